// i = next[i], `steps` times. No FLOPs; one line a load. OpenCL has no cycle counter: out[1] = 0.
kernel void chase(global const uint *next, global uint *out, uint elements, uint stride, uint steps) {
    uint i = 0;
    for (uint s = 0; s < steps; s++) i = next[i];
    out[0] = i;
    out[1] = 0;
}

#ifdef ELEMENTS
kernel void chase_shared(global const uint *next, global uint *out, uint elements, uint stride, uint steps) {
    local uint held[ELEMENTS];
    for (uint j = 0; j < elements; j++) held[j] = next[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint i = 0;
    for (uint s = 0; s < steps; s++) i = held[i];
    out[0] = i;
    out[1] = 0;
}
#endif

#ifdef OFFSET
kernel void chase_registers(global const uint *seed, global uint *out, uint steps) {
    uint i = seed[0];
    for (uint s = 0; s < steps; s++) i = i * i + OFFSET;
    out[0] = i;
    out[1] = 0;
}
#endif
