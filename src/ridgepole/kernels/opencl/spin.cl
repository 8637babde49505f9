// x = x * 0.5 + 1, `rounds` times. FLOPs: 2 threads rounds.
// Neither fma() nor mad(), here or anywhere: PoCL 3.0 runs fma() 8.6 times slower than a * b + c where it takes the CPU
// for a haswell (3.9 against 33.5 GFLOP/s measured), and aborts where it takes it for a plain x86-64.
kernel void spin(global float *out, uint threads, uint rounds) {
    uint i = get_global_id(0);
    float x = (float)(i % STARTS);
    for (uint r = 0; r < rounds; r++) x = x * 0.5f + 1.0f;
    if (i < threads) out[i] = x;
}
