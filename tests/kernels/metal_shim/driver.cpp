// Runs one kernel over a grid: program ENTRY SEED GX GY GZ BX BY BZ ARGUMENT...
// An argument is b:BYTES:FILE (a buffer read from the file and written back) or u:VALUE. GX... are threadgroups.
//
// Threadgroups run one after another, in random order; the threads of one as fibers, switched at barriers only, in a
// new random order each time. So a thread sees what others wrote before a barrier it shared with them, and what they
// did since then it sees or not as the seed has it: a barrier that is missing makes wrong results. Threadgroup memory
// is filled with 0xff (NaN) before each group. Buffers are allocated to the byte, for the address sanitizer to watch.
#include "groups.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

extern "C" {
extern char __start_threadgroup_memory[] __attribute__((weak));
extern char __stop_threadgroup_memory[] __attribute__((weak));
}

namespace {

constexpr size_t STACK = 64 << 10;
constexpr int DONE = -1;

struct Fiber {
    ucontext_t context;
    int line = DONE; // of the barrier it waits at
    shim::Place place;
};

ucontext_t scheduler;
std::vector<std::unique_ptr<Fiber>> fibers;
Fiber *running = nullptr;
const shim::Entry *entry = nullptr;
shim::Arguments arguments;
std::mt19937 source;

[[noreturn]] void fail(const char *why, int line) {
    fprintf(stderr, "line %d: %s\n", line, why);
    exit(3);
}

void live() {
    for (;;) {
        entry->call(arguments, running->place);
        running->line = DONE;
        swapcontext(&running->context, &scheduler);
    }
}

// Byte by byte and unwatched: the section may hold the sanitizer's own zones.
__attribute__((no_sanitize("address"), noinline)) void poison() {
    for (volatile char *at = __start_threadgroup_memory; at != __stop_threadgroup_memory; ++at) *at = char(0xff);
}

void make_fibers(size_t threads) {
    void *stacks = mmap(nullptr, threads * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED) fail("no memory for stacks", 0);
    for (size_t i = 0; i < threads; ++i) {
        fibers.push_back(std::make_unique<Fiber>());
        ucontext_t &context = fibers.back()->context;
        getcontext(&context);
        context.uc_stack.ss_sp = static_cast<char *>(stacks) + i * STACK;
        context.uc_stack.ss_size = STACK;
        context.uc_link = nullptr;
        makecontext(&context, live, 0);
    }
}

// One threadgroup: each round takes every thread to its next barrier or its end; all must come to the same.
void run_group(const std::vector<shim::Place> &places, std::vector<uint> &order) {
    for (size_t i = 0; i < places.size(); ++i) fibers[i]->place = places[i];
    int line = 0;
    while (line != DONE) {
        std::shuffle(order.begin(), order.end(), source);
        for (uint i : order) {
            running = fibers[i].get();
            swapcontext(&scheduler, &running->context);
        }
        running = nullptr;
        line = fibers[0]->line;
        for (auto &fiber : fibers)
            if (fiber->line != line)
                fail("the threads of a threadgroup part at this barrier", std::max(line, fiber->line));
    }
}

std::vector<std::string> split(const std::string &text) {
    size_t first = text.find(':'), second = text.find(':', first + 1);
    if (second == std::string::npos) return {text.substr(0, first), text.substr(first + 1)};
    return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

struct Buffer {
    std::string file;
    char *bytes;
    size_t size;
};

} // namespace

void shim::barrier(bool of_threadgroup_memory, int line) {
    if (!of_threadgroup_memory) fail("this barrier does not order threadgroup memory", line);
    running->line = line;
    swapcontext(&running->context, &scheduler);
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "threadgroup-memory")) {
        printf("%td\n", __stop_threadgroup_memory - __start_threadgroup_memory);
        return 0;
    }
    if (count < 9) return 2;
    for (int i = 0; i < shim::entry_count; ++i)
        if (!strcmp(shim::entries[i].name, words[1])) entry = &shim::entries[i];
    if (!entry) fail("no such kernel", 0);
    source.seed(strtoul(words[2], nullptr, 10));
    uint shape[6];
    for (int i = 0; i < 6; ++i) shape[i] = strtoul(words[3 + i], nullptr, 10);
    metal::uint3 grid{shape[0], shape[1], shape[2]}, block{shape[3], shape[4], shape[5]};
    if (count - 9 != entry->arguments) fail("not the number of arguments it takes", 0);

    std::vector<Buffer> buffers;
    std::vector<std::unique_ptr<uint>> sizes;
    for (int i = 9; i < count; ++i) {
        auto parts = split(words[i]);
        if (parts[0] == "u") {
            sizes.push_back(std::make_unique<uint>(strtoul(parts[1].c_str(), nullptr, 10)));
            arguments.at[i - 9] = sizes.back().get();
            continue;
        }
        Buffer buffer{parts[2], nullptr, strtoull(parts[1].c_str(), nullptr, 10)};
        buffer.bytes = static_cast<char *>(malloc(buffer.size));
        FILE *file = fopen(buffer.file.c_str(), "rb");
        if (!file || fread(buffer.bytes, 1, buffer.size, file) != buffer.size) fail("a buffer's file is short", 0);
        fclose(file);
        arguments.at[i - 9] = buffer.bytes;
        buffers.push_back(buffer);
    }

    const uint threads = block.x * block.y * block.z;
    if (entry->waits) make_fibers(threads);
    std::vector<uint> groups(size_t(grid.x) * grid.y * grid.z), order(threads);
    std::iota(groups.begin(), groups.end(), 0);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(groups.begin(), groups.end(), source);
    std::vector<shim::Place> places(threads);
    for (uint group : groups) {
        metal::uint3 g{group % grid.x, group / grid.x % grid.y, group / grid.x / grid.y};
        for (uint i = 0; i < threads; ++i) {
            metal::uint3 t{i % block.x, i / block.x % block.y, i / block.x / block.y};
            places[i] = {{g.x * block.x + t.x, g.y * block.y + t.y, g.z * block.z + t.z},
                         t,
                         g,
                         block,
                         {grid.x * block.x, grid.y * block.y, grid.z * block.z},
                         grid};
        }
        poison();
        if (entry->waits) {
            run_group(places, order);
            continue;
        }
        std::shuffle(order.begin(), order.end(), source);
        for (uint i : order) entry->call(arguments, places[i]);
    }

    for (const Buffer &buffer : buffers) {
        FILE *file = fopen(buffer.file.c_str(), "wb");
        if (!file || fwrite(buffer.bytes, 1, buffer.size, file) != buffer.size) fail("a buffer cannot be written", 0);
        fclose(file);
    }
    return 0;
}
