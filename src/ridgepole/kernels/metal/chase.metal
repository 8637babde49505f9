// i = next[i], `steps` times. No FLOPs; one line a load. Metal has no cycle counter: out[1] = 0.
#include <metal_stdlib>
using namespace metal;

kernel void chase(device const uint *next [[buffer(0)]], device uint *out [[buffer(1)]],
                  constant uint &elements [[buffer(2)]], constant uint &stride [[buffer(3)]],
                  constant uint &steps [[buffer(4)]]) {
    uint i = 0;
    for (uint s = 0; s < steps; s++) i = next[i];
    out[0] = i;
    out[1] = 0;
}

#ifdef ELEMENTS
kernel void chase_shared(device const uint *next [[buffer(0)]], device uint *out [[buffer(1)]],
                         constant uint &elements [[buffer(2)]], constant uint &stride [[buffer(3)]],
                         constant uint &steps [[buffer(4)]]) {
    threadgroup uint held[ELEMENTS];
    for (uint j = 0; j < elements; j++) held[j] = next[j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint i = 0;
    for (uint s = 0; s < steps; s++) i = held[i];
    out[0] = i;
    out[1] = 0;
}
#endif

#ifdef OFFSET
kernel void chase_registers(device const uint *seed [[buffer(0)]], device uint *out [[buffer(1)]],
                            constant uint &steps [[buffer(2)]]) {
    uint i = seed[0];
    for (uint s = 0; s < steps; s++) i = i * i + OFFSET;
    out[0] = i;
    out[1] = 0;
}
#endif
