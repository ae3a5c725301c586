/* `unicode_runs` holds the kinds of Unicode's code points that the pre-tokenizer distinguishes, as
 * runs of code points of one kind, in order from 0. The length of a run is a decimal number. Its
 * digits are a to j for letters, A to J for numbers, K to T for spaces, and 0 to 9 for others.
 * tests/llm/make_unicode.py wrote this file. */
static const char *const unicode_runs[] = {
    "9P18L15BA7cg6cg10L26L9b7C1b3Bb1D1cd1db1efi4bc14f7b1b129f1c2e1b6b1d1b1ca1id1bdj8bgg1di2b6eb71",
    "ch4e45ed21BA4c1jj1b15c7cBAd2b16b1da29ij11b14BAdd9c4b5cc4b9b3b23cf7bb5ce1g17ec58fe3b18b7ba4BA1",
    "bg4i2c2cc1h1b3e3b16b13c1d4BAc2G2b8g4c2cc1h1c1c1c31e1b7BA2d16j1d1cc1h1c1f3b18b15c4BA9b11i2c2cc",
    "1h1c1f3b30c1d4BA1bG11b1g3d1e3c1b1c3c3d3bc22b21BD18i1d1cd1bg3b26d2b2c4BA8H1b4i1d1cd1ba1f3b31c1",
    "c4BA1c17j1d1eb2b16b5d1Hd4BJ1g5bi3ce1j1b2h31BA17ei1c12h9BA39c1b1f1ce1b1ba1c9b2f1b9BA2e32b31CA",
    "12i1dg27f115ed20bBA6g4e3b3c7d4bd12b1BA6di1b5b2ed1ddd1e2h1b1e2eb1e2dd1e2h1b1e2bf1fh1e2gh14CA3",
    "bg16ig2g3gca2bhLcg5hf3Di7bi13bj14bi14bd1d15fc35b4b3BA6BA22BA6ij7f2de1b5ha10db39BAda2f11ee4cg6",
    "BB37cd9fd43BA6BA13b93eh17i3BA41da13cBAee26dg28BA3dBAdg2bb5ed2d41e1g1c3b5bjc64chi2g2di2g2i1b1b",
    "1b1db2fd1h1b3d1h3e2g4bd5d1h3LL29M5L47L16Bb2G5bBA6bd101b4b2ba1b3f6b1b1b1e1bb2e5f4b1FBcF726GA78",
    "CC630DA1132ccj6e3c9B2di1b5b2fg7b16cd9h1h1h1h1h1h1h1h80b464L4cB25J7f2Dc4ig6d1ja1e5ed1je3E10dc",
    "48bg32BA30I1BF32BA39BF320gfjc64ccbfh67eg2cgj3bgBAc20eh16db2haBA39j2bad2gh2c1b1i21bg1d1e1cd13G",
    "10fc14fa28BA24g3b1c1BAci10cd25cj7eh28bBA6f1baBAf1eb23d1i4BA6cd3b3fa1b3c2f2b1b24d2bb7d12g2g2g9",
    "h1h1ed1be6bbf13BA6bbbhc12cd4ej8452dgg2bag38h12f5b1ba1bd1f1b1c1c1bai33dgd18ge2fe40bc116f1bdf19",
    "BA7cg6cg11ij3g2g2g2d35bc1cg1bj1c1bf2be34bcd12EF12FH17C244cj3ej16CH4dcE9caBiB5di10da2dg4i1F42",
    "bfi2BA6dg4dg4ea8fc12bb1bf1h1c1bb1bf1h1c3fc12dbb9cc10i24g1ec1j69g2b1ee1c3b2cd2Icd2Hdb8J48bj1c5",
    "FccG4cg70fg4CcBG2EGb15e1d1cj10J23cjC1cjD32i1ci6F16fe10cc2Ibj5Ibi23H80hd55fb13fb7Gdg12BA6BAci9",
    "cd218DB1ec6c16d59cjBAb8cc11E27bi46cbH20cd12fd26DA1c2b13ef32cf7BA9dg15BA4b2b8df3b12ei14e11BAb1",
    "b4CA11bi1cf19c63h1b1e1bf1ba7eh17BA11i2c2cc1h1c1f3b18b12f30ba1b2b1di1b25b1b44fd18e5BA5d30ei20c",
    "1b8BA166eh41e36ei20b11BA38ed13b7BA6CA28ch21BC4h185ee116geBJ12i2b2i1c1ce15b1b14BA70i2dj16b1b28",
    "b10ea7b21b11eg19b18hd199dd15BA6j1dh17b15CJ5da112h1c1di21b9BA6g1c1dc14b7BA310bj15b1bd1de28BA86",
    "b15CB43jcc102BBB17bjg2636jh15bahc17g25djjf5fid6841da18BA1734fgj7db1BA6hj1BA6da18ei16e12BA1H1",
    "cb5bj432ef3BA198geCD105hf5b66bd64c1b28gbdg8bcdi41ba8935e1h1c1cjb15b29d2b14e8djg2308bah5bd3j7",
    "ba4182BA1478CA12CA108CF135if1hb1c2b2c2e1bc1b1h1gf1e2i1h1ci1e1f1b3h1dea2cf1cf1db1cf1db1cf1db1",
    "cf1db1cf1i2FA1792db6g261gc146ef10h2BA4b321da18ee4BA470ci4BA214da2bBA485h1e1c1bf1bjh2J48gi7b4",
    "BA791FJ1D1E76EF1BF194e1ch1c1b2b1ba1e1b1b6b4b1b1b1d1c1b2b1b1b1b1b1c1b2e1h1e1e1b1ba1bh5d1f1bh",
    "580BD2787BA1030echca32ebfe6ccc2fhgc14hehd15gcc2466fec1506ejdj5ebjc908368",
};
