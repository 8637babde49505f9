// Fills BYTES of local memory; each thread sums words that others wrote. More words than BYTES hold are not written:
// the result is wrong then, and nothing else is.
kernel void shared_probe(global uint *out, uint words, uint rounds) {
    local uint held[BYTES / 4];
    uint t = get_local_id(0), threads = get_local_size(0);
    for (uint i = t; i < min(words, (uint)(BYTES / 4)); i += threads) held[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint r = 0; r < rounds; r++) sum += held[(t + 1 + r * threads) % min(words, (uint)(BYTES / 4))];
    out[t] = sum;
}
