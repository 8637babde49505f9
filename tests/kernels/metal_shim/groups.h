// Between a kernel and the driver: where a thread is, what the kernel is given, and the barrier.
#pragma once

using uint = unsigned int;
using ulong = unsigned long;

namespace metal {

struct uint2 {
    uint x, y;
};
struct uint3 {
    uint x, y, z;
};
enum class mem_flags { mem_none, mem_device, mem_threadgroup };

} // namespace metal

namespace shim {

// Named as the attributes that ask for them.
struct Place {
    metal::uint3 thread_position_in_grid, thread_position_in_threadgroup, threadgroup_position_in_grid;
    metal::uint3 threads_per_threadgroup, threads_per_grid, threadgroups_per_grid;
};

// The argument of each index: a buffer's address or that of a size.
struct Arguments {
    void *at[31];
    template <typename T> T *buffer(int index) const { return static_cast<T *>(at[index]); }
    template <typename T> const T &value(int index) const { return *static_cast<const T *>(at[index]); }
};

template <typename T> T narrow(metal::uint3 from);
template <> inline uint narrow<uint>(metal::uint3 from) { return from.x; }
template <> inline metal::uint2 narrow<metal::uint2>(metal::uint3 from) { return {from.x, from.y}; }
template <> inline metal::uint3 narrow<metal::uint3>(metal::uint3 from) { return from; }

struct Entry {
    const char *name;
    void (*call)(const Arguments &, const Place &);
    bool waits; // whether its text has a barrier
    int arguments;
};
extern const Entry entries[];
extern const int entry_count;

void barrier(bool of_threadgroup_memory, int line);

} // namespace shim
