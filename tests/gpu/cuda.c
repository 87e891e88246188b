/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the properties of CUDA's driver that the library depends on: memory that is mapped
 * explicitly and passed to another process, streams and their words, events, captures and replays,
 * and the errors. The pretended driver must pass the same test as the real one. PEs: 1 2 */
#include "gpu.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRANULE = 2 << 20,
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    NOT_READY = 600,
    NOT_SUPPORTED = 801
};

#define EXPECT_ERROR(number, call)                              \
    do {                                                        \
        int came = gpu.call;                                    \
        EXPECT(came == (number), "%s came to %d", #call, came); \
    } while (0)

static bool pretended;
static weft_cu_address words; /* GRANULE bytes of GPU memory, for all cases */
static weft_cu_stream one, other;

/* --- Memory ------------------------------------------------------------------------------------
 */

static struct weft_cu_memory_properties properties(void) {
    return (struct weft_cu_memory_properties){
        .type = WEFT_CU_MEMORY_PINNED,
        .handle_types = WEFT_CU_HANDLE_DESCRIPTOR,
        .location = {WEFT_CU_LOCATION_DEVICE, gpu_device},
    };
}

static void allow(weft_cu_address at, size_t bytes) {
    struct weft_cu_access access = {{WEFT_CU_LOCATION_DEVICE, gpu_device},
                                    WEFT_CU_ACCESS_READ_WRITE};
    GPU(cuMemSetAccess(at, bytes, &access, 1));
}

static weft_cu_memory create(size_t bytes) {
    struct weft_cu_memory_properties wanted = properties();
    weft_cu_memory memory;
    GPU(cuMemCreate(&memory, bytes, &wanted, 0));
    return memory;
}

static weft_cu_address map_new(size_t bytes) {
    weft_cu_address at;
    weft_cu_memory memory = create(bytes);
    GPU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    GPU(cuMemMap(at, bytes, 0, memory, 0));
    GPU(cuMemRelease(memory));
    allow(at, bytes);
    return at;
}

static void rules_of_mapping(void) {
    tap_case("memory is mapped whole, once, and only where addresses are reserved");
    weft_cu_address at, second;
    weft_cu_memory memory = create(GRANULE);
    GPU(cuMemAddressReserve(&at, (size_t)4 * GRANULE, 0, 0, 0));
    EXPECT_ERROR(INVALID_VALUE, cuMemAddressReserve(&second, GRANULE / 2, 0, 0, 0));
    EXPECT_ERROR(INVALID_VALUE, cuMemMap(at + 4096, GRANULE, 0, memory, 0));
    EXPECT_ERROR(NOT_SUPPORTED, cuMemMap(at, (size_t)2 * GRANULE, 0, memory, 0));
    GPU(cuMemMap(at, GRANULE, 0, memory, 0));
    EXPECT_ERROR(INVALID_VALUE, cuMemMap(at, GRANULE, 0, memory, 0));
    GPU(cuMemUnmap(at + GRANULE, GRANULE));
    EXPECT_ERROR(INVALID_VALUE, cuMemAddressFree(at, (size_t)4 * GRANULE));
    GPU(cuMemUnmap(at, GRANULE));
    GPU(cuMemRelease(memory));
    EXPECT_ERROR(INVALID_VALUE, cuMemRelease(memory));
    GPU(cuMemAddressFree(at, (size_t)4 * GRANULE));
}

static void copy_needs_access(void) {
    tap_case("without access there is no copy, with it there is, across mappings");
    size_t bytes = (size_t)2 * GRANULE;
    weft_cu_address at;
    weft_cu_memory first = create(GRANULE), second = create(GRANULE);
    GPU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    GPU(cuMemMap(at, GRANULE, 0, first, 0));
    GPU(cuMemMap(at + GRANULE, GRANULE, 0, second, 0));
    EXPECT(gpu.cuMemcpyAsync(at, (weft_cu_address)gpu_data(64, 1), 64, one) != 0, "copied");
    allow(at, bytes);
    gpu_write((void *)at, gpu_data(bytes, 2), bytes);
    gpu_expect((void *)at, gpu_data(bytes, 2), bytes, "two mappings");
    GPU(cuMemUnmap(at, bytes));
    GPU(cuMemAddressFree(at, bytes));
    GPU(cuMemRelease(first));
    GPU(cuMemRelease(second));
}

static void memory_runs_out(void) {
    tap_case("memory runs out with an error, and comes back");
    struct weft_cu_memory_properties wanted = properties();
    weft_cu_memory memory;
    size_t available, total, before;
    GPU(cuMemGetInfo(&before, &total));
    total = (total / GRANULE + 1) * GRANULE;
    EXPECT_ERROR(WEFT_CU_OUT_OF_MEMORY, cuMemCreate(&memory, total, &wanted, 0));
    GPU(cuMemCreate(&memory, (size_t)16 * GRANULE, &wanted, 0));
    GPU(cuMemGetInfo(&available, &total));
    EXPECT(!pretended || available == before - (size_t)16 * GRANULE, "%zu of %zu", available,
           before);
    GPU(cuMemRelease(memory));
    GPU(cuMemGetInfo(&available, &total));
    EXPECT(!pretended || available == before, "%zu of %zu", available, before);
}

static void host_faults(void) {
    tap_case("the host cannot touch GPU memory");
    GPU(cuCtxSynchronize());
    int pipes[2];
    if (pipe(pipes) < 0)
        exit(1);
    EXPECT(write(pipes[1], (void *)words, 8) < 0, "the kernel read it");
    close(pipes[0]);
    close(pipes[1]);
}

/* --- Host memory -------------------------------------------------------------------------------
 */

static void registration(void) {
    tap_case("registered memory is known by its address, and only once");
    enum { BYTES = 16 << 12 };
    weft_cu_address found;
    unsigned type = 0;
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    weft_cu_address address = (weft_cu_address)at;
    EXPECT_ERROR(INVALID_VALUE, cuPointerGetAttribute(&type, WEFT_CU_POINTER_MEMORY_TYPE, address));
    GPU(cuMemHostRegister(at, BYTES / 2, WEFT_CU_HOST_PORTABLE | WEFT_CU_HOST_DEVICE_MAP));
    EXPECT_ERROR(WEFT_CU_ALREADY_REGISTERED, cuMemHostRegister(at, BYTES / 2, 0));
    GPU(cuPointerGetAttribute(&type, WEFT_CU_POINTER_MEMORY_TYPE, address + 100));
    EXPECT(type == WEFT_CU_POINTER_TO_HOST, "type %u", type);
    GPU(cuMemHostGetDevicePointer(&found, at + 8, 0));
    EXPECT(found == address + 8, "elsewhere");
    GPU(cuPointerGetAttribute(&type, WEFT_CU_POINTER_MEMORY_TYPE, words + 4));
    EXPECT(type == WEFT_CU_POINTER_TO_DEVICE, "type %u", type);
    GPU(cuMemHostUnregister(at));
    EXPECT(gpu.cuMemHostUnregister(at) != 0, "unregistered twice");
    munmap(at, BYTES);
}

static void when_copies_read(void) {
    tap_case("a copy reads pageable memory at the call, and registered memory when it runs");
    enum { BYTES = 4096 };
    unsigned char *page =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char value = 1, found[2];
    memset(page, 1, BYTES);
    GPU(cuMemHostRegister(page, BYTES, WEFT_CU_HOST_DEVICE_MAP));
    uint32_t zero = 0;
    gpu_write((void *)words, &zero, 4);
    GPU(cuStreamWaitValue32(one, words, 1, WEFT_CU_WAIT_GEQ));
    GPU(cuMemcpyAsync(words + 64, (weft_cu_address)&value, 1, one));
    GPU(cuMemcpyAsync(words + 65, (weft_cu_address)page, 1, one));
    value = page[0] = 2;
    GPU(cuStreamWriteValue32(other, words, 1, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamSynchronize(one));
    gpu_copy(found, (void *)(words + 64), 2);
    EXPECT(found[0] == 1 && found[1] == 2, "%u %u", found[0], found[1]);
    GPU(cuMemHostUnregister(page));
    munmap(page, BYTES);
}

/* --- Streams -----------------------------------------------------------------------------------
 */

static void order_of_words(void) {
    tap_case("two streams wait for each other's words, in turn");
    uint32_t zeros[2] = {0, 0};
    gpu_write((void *)words, zeros, sizeof zeros);
    for (uint32_t round = 1; round <= 100; round++) {
        GPU(cuStreamWriteValue32(one, words, round, WEFT_CU_WRITE_ORDERED));
        GPU(cuStreamWaitValue32(one, words + 4, round, WEFT_CU_WAIT_EQ));
        union weft_cu_word_op ops[2] = {
            {{WEFT_CU_OP_WAIT_32, words, {round}, WEFT_CU_WAIT_GEQ, 0}},
            {{WEFT_CU_OP_WRITE_32, words + 4, {round}, WEFT_CU_WRITE_ORDERED, 0}},
        };
        GPU(cuStreamBatchMemOp(other, 2, ops, 0));
    }
    GPU(cuStreamSynchronize(one));
    GPU(cuStreamSynchronize(other));
    uint32_t last[2] = {100, 100};
    gpu_expect((void *)words, last, sizeof last, "words");
}

static void order_of_events(void) {
    tap_case("an event orders two streams, and tells when it came");
    enum { BYTES = 1 << 20 };
    weft_cu_event begin, event;
    weft_cu_address from = words + 4096, to = words + 4096 + 900000;
    float ms = -1;
    GPU(cuEventCreate(&begin, 0));
    GPU(cuEventCreate(&event, 0));
    GPU(cuEventRecord(begin, one));
    GPU(cuMemsetD8Async(from, 7, 900000, one));
    GPU(cuEventRecord(event, one));
    GPU(cuStreamWaitEvent(other, event, 0));
    GPU(cuMemcpyAsync(to, from, 900000, other));
    GPU(cuStreamSynchronize(other));
    unsigned char *expected = malloc(BYTES);
    memset(expected, 7, BYTES);
    gpu_expect((void *)to, expected, 900000, "behind the event");
    GPU(cuEventSynchronize(event));
    GPU(cuEventElapsedTime(&ms, begin, event));
    EXPECT(ms >= 0, "%f ms", (double)ms);
    free(expected);
    GPU(cuEventDestroy(begin));
    GPU(cuEventDestroy(event));
}

static void note_call(void *argument) {
    int count;
    *(int *)argument = gpu.cuDeviceGetCount(&count) ? 1 : 2;
}

static void default_stream(void) {
    tap_case("the default stream waits for blocking streams, and functions run in order");
    weft_cu_stream blocking;
    int called = 0;
    uint32_t zero = 0;
    gpu_write((void *)words, &zero, 4);
    GPU(cuStreamCreateWithPriority(&blocking, 0, 0));
    GPU(cuStreamWaitValue32(blocking, words, 1, WEFT_CU_WAIT_GEQ));
    GPU(cuLaunchHostFunc(blocking, note_call, &called));
    GPU(cuMemsetD8Async(words + 8, 1, 8, NULL));
    EXPECT_ERROR(NOT_READY, cuStreamQuery(NULL));
    GPU(cuStreamWriteValue32(one, words, 1, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamSynchronize(NULL));
    EXPECT(called != 0, "the function was not called");
    GPU(cuStreamDestroy(blocking));
}

/* --- Captures ----------------------------------------------------------------------------------
 */

/* Two copies on two streams that fork and join; both replay with the data of then. */
static weft_cu_graph capture_fork(weft_cu_event fork, weft_cu_event join) {
    weft_cu_graph graph;
    GPU(cuStreamBeginCapture(one, WEFT_CU_CAPTURE_GLOBAL));
    GPU(cuMemcpyAsync(words + 4096, words, 64, one));
    GPU(cuEventRecord(fork, one));
    GPU(cuStreamWaitEvent(other, fork, 0));
    GPU(cuMemcpyAsync(words + 8192, words + 4096, 64, other));
    GPU(cuEventRecord(join, other));
    GPU(cuMemcpyAsync(words + 12288, words + 4096, 64, one));
    GPU(cuStreamWaitEvent(one, join, 0));
    GPU(cuMemcpyAsync(words + 12288 + 64, words + 8192, 64, one));
    GPU(cuStreamEndCapture(one, &graph));
    return graph;
}

static void replay(void) {
    tap_case("a captured graph replays with fresh data, its branches in order");
    weft_cu_event fork, join;
    weft_cu_graph_exec exec;
    GPU(cuEventCreate(&fork, WEFT_CU_EVENT_NO_TIMING));
    GPU(cuEventCreate(&join, WEFT_CU_EVENT_NO_TIMING));
    weft_cu_graph graph = capture_fork(fork, join);
    GPU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GPU(cuGraphDestroy(graph));
    for (uint64_t round = 0; round < 200; round++) {
        gpu_write((void *)words, gpu_data(64, round), 64);
        GPU(cuGraphLaunch(exec, one));
        GPU(cuStreamSynchronize(one));
        gpu_expect((void *)(words + 12288), gpu_data(64, round), 64, "round %d, one", (int)round);
        gpu_expect((void *)(words + 12288 + 64), gpu_data(64, round), 64, "round %d, other",
                   (int)round);
    }
    GPU(cuGraphExecDestroy(exec));
    GPU(cuEventDestroy(fork));
    GPU(cuEventDestroy(join));
}

static void forbidden_while_capturing(void) {
    tap_case("what would disturb a capture fails, unless the thread is relaxed");
    weft_cu_graph graph;
    int mode = WEFT_CU_CAPTURE_RELAXED, status;
    GPU(cuStreamBeginCapture(one, WEFT_CU_CAPTURE_GLOBAL));
    GPU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == WEFT_CU_CAPTURE_GLOBAL, "mode %d", mode);
    GPU(cuStreamSynchronize(other));
    GPU(cuStreamIsCapturing(one, &status));
    EXPECT(status == 1, "status %d", status);
    GPU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_ERROR(900, cuStreamSynchronize(one));
    EXPECT_ERROR(901, cuMemsetD8Async(words, 0, 8, one));
    EXPECT_ERROR(901, cuStreamEndCapture(one, &graph));
    GPU(cuStreamIsCapturing(one, &status));
    EXPECT(status == WEFT_CU_CAPTURE_NONE, "status %d", status);
}

static void unjoined(void) {
    tap_case("a branch that does not come back is an error");
    weft_cu_graph graph;
    weft_cu_event fork;
    GPU(cuEventCreate(&fork, WEFT_CU_EVENT_NO_TIMING));
    GPU(cuStreamBeginCapture(one, WEFT_CU_CAPTURE_RELAXED));
    GPU(cuEventRecord(fork, one));
    GPU(cuStreamWaitEvent(other, fork, 0));
    GPU(cuMemsetD8Async(words, 0, 8, other));
    EXPECT_ERROR(904, cuStreamEndCapture(one, &graph));
    GPU(cuEventDestroy(fork));
}

static void without_context(void) {
    tap_case("without a current context calls fail");
    weft_cu_context context, current;
    weft_cu_event event;
    GPU(cuCtxPopCurrent(&context));
    EXPECT_ERROR(INVALID_CONTEXT, cuEventCreate(&event, 0));
    EXPECT_ERROR(INVALID_CONTEXT, cuMemsetD8Async(words, 0, 8, NULL));
    GPU(cuCtxGetCurrent(&current));
    EXPECT(current == NULL, "a context is current");
    GPU(cuCtxPushCurrent(context));
}

/* --- Kernels, which the pretended driver has for this test -------------------------------------
 */

static void launch(weft_cu_module module, const char *name, weft_cu_stream stream,
                   void **arguments) {
    weft_cu_function function;
    GPU(cuModuleGetFunction(&function, module, name));
    GPU(cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static void kernels(void) {
    tap_case("kernels of two streams run at once; arguments are those of the call");
    if (!pretended)
        return;
    weft_cu_module module;
    weft_cu_function none;
    uint32_t expected[4] = {5, 5, 5, 5};
    weft_cu_address at = words, first = words + 64;
    unsigned count = 4, value = 5;
    GPU(cuModuleLoadData(&module, "any"));
    EXPECT_ERROR(500, cuModuleGetFunction(&none, module, "no_such_kernel"));
    GPU(cuMemsetD8Async(words, 0, 4096, one));
    GPU(cuStreamSynchronize(one));
    launch(module, "probe_wait", one, (void *[]){&at, &value});
    launch(module, "probe_add", one, (void *[]){&first, &count, &value});
    EXPECT_ERROR(NOT_READY, cuStreamQuery(one));
    launch(module, "probe_add", other, (void *[]){&at, &count, &value});
    value = 9;
    GPU(cuStreamSynchronize(one));
    gpu_expect((void *)first, expected, sizeof expected, "sums");
    GPU(cuModuleUnload(module));
}

/* A context in which a kernel has failed is useless, so this runs in a process of its own. */
static void failure_in_child(bool trap) {
    weft_cu_module module;
    static uint32_t host_word = 1;
    void *word = &host_word;
    unsigned value = 1;
    GPU(cuModuleLoadData(&module, "any"));
    if (trap)
        launch(module, "probe_trap", one, (void *[]){NULL});
    else
        launch(module, "probe_wait", one, (void *[]){&word, &value});
    int error = gpu.cuStreamSynchronize(one);
    int expected = trap ? 719 : 700;
    _exit(error == expected && gpu.cuMemsetD8Async(words, 0, 8, other) == expected ? 0 : error);
}

/* --- Another process ---------------------------------------------------------------------------
 */

/* With a byte of its own. */
static void send_descriptor(int socket, int fd, char byte) {
    char space[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1)
        exit(1);
}

static int receive_descriptor(int socket, char *byte) {
    int fd;
    char space[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (recvmsg(socket, &message, 0) != 1)
        _exit(0); /* skipped: the PE has ended */
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void open_streams(void) {
    GPU(cuStreamCreateWithPriority(&one, WEFT_CU_STREAM_NON_BLOCKING, 0));
    GPU(cuStreamCreateWithPriority(&other, WEFT_CU_STREAM_NON_BLOCKING, 0));
}

/* The other process: waits for a word in the memory that it receives, and writes after it. */
static void serve(int socket) {
    char byte;
    int fd = receive_descriptor(socket, &byte);
    weft_cu_memory memory;
    if (gpu_load())
        _exit(1);
    GPU(cuDeviceGet(&gpu_device, byte));
    GPU(cuDevicePrimaryCtxRetain(&gpu_context, gpu_device));
    GPU(cuCtxPushCurrent(gpu_context));
    open_streams();
    GPU(cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd, WEFT_CU_HANDLE_DESCRIPTOR));
    close(fd);
    GPU(cuMemAddressReserve(&words, GRANULE, 0, 0, 0));
    GPU(cuMemMap(words, GRANULE, 0, memory, 0));
    allow(words, GRANULE);
    GPU(cuStreamWaitValue32(one, words, 42, WEFT_CU_WAIT_EQ));
    GPU(cuMemcpyAsync(words + 4096, words + 8192, 1000, one));
    GPU(cuStreamWriteValue32(one, words + 4, 43, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamSynchronize(one));
    if (read(socket, &byte, 1) != 1) /* until the PE has seen it */
        _exit(1);
    if (gpu_is_pretended())
        failure_in_child(byte == 't');
    _exit(0);
}

/* The last GPU that reaches the memory of this PE's. */
static int farthest(void) {
    int can = 0, last = gpu_count - 1;
    GPU(cuDeviceCanAccessPeer(&can, last, gpu_device));
    return can ? last : gpu_device;
}

static void another_process(int socket, pid_t child) {
    tap_case("another process maps the memory by a descriptor; a failed context stays failed");
    weft_cu_memory memory = create(GRANULE);
    weft_cu_address at;
    int fd, status;
    GPU(cuMemAddressReserve(&at, GRANULE, 0, 0, 0));
    GPU(cuMemMap(at, GRANULE, 0, memory, 0));
    allow(at, GRANULE);
    GPU(cuMemsetD8Async(at, 0, GRANULE, one));
    GPU(cuStreamSynchronize(one));
    gpu_write((void *)(at + 8192), gpu_data(1000, 5), 1000);
    GPU(cuMemExportToShareableHandle(&fd, memory, WEFT_CU_HANDLE_DESCRIPTOR, 0));
    send_descriptor(socket, fd, (char)farthest());
    close(fd);
    GPU(cuStreamWriteValue32(one, at, 42, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamWaitValue32(one, at + 4, 43, WEFT_CU_WAIT_GEQ));
    GPU(cuStreamSynchronize(one));
    gpu_expect((void *)(at + 4096), gpu_data(1000, 5), 1000, "what the other has copied");
    EXPECT(write(socket, tap_pe % 2 ? "t" : "a", 1) == 1, "the other has gone");
    waitpid(child, &status, 0);
    EXPECT(status == 0, "the other ended with %#x", (unsigned)status);
    GPU(cuMemUnmap(at, GRANULE));
    GPU(cuMemRelease(memory));
    GPU(cuMemAddressFree(at, GRANULE));
}

/* --- All ---------------------------------------------------------------------------------------
 */

static void run_all(void) {
    rules_of_mapping();
    copy_needs_access();
    memory_runs_out();
    host_faults();
    registration();
    when_copies_read();
    order_of_words();
    order_of_events();
    default_stream();
    replay();
    forbidden_while_capturing();
    unjoined();
    kernels();
    without_context();
}

int main(void) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return 1;
    pid_t child = fork(); /* before CUDA is there */
    if (child == 0) {
        close(sockets[0]);
        serve(sockets[1]);
    }
    close(sockets[1]);
    shmem_init();
    gpu_start();
    pretended = gpu_is_pretended();
    gpu_enter();
    open_streams();
    words = map_new(GRANULE);
    run_all();
    another_process(sockets[0], child);
    gpu_leave();
    return gpu_finish();
}
