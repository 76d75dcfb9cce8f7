/// Wakes a thread that waits, from another thread or from a signal handler.
///
/// poll(2) waits by a clock that no one sets. Dispatch's semaphores wait by the date on Linux: after a step back no
/// signal was heard for as long as that went.
final class WakePipe: Sendable {
    private let output: Int32
    private let input: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends where end >= 0 {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (output, input) = (ends[0], ends[1])
    }

    deinit { for end in [output, input] where end >= 0 { close(end) } }

    /// May be called in a signal handler: write(2) is safe there, signal-safety(7). A full pipe wakes as well.
    func wake() {
        let error = errno
        var byte: UInt8 = 0
        _ = write(input, &byte, 1)
        errno = error
    }

    /// Waits until one of them was woken since the last call.
    static func wait(for pipes: [WakePipe]) {
        var ends = pipes.map { pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0) }
        // No descriptor was left for one of them: then the thread looks now and then.
        let isWhole = ends.allSatisfy { $0.fd >= 0 }
        _ = poll(&ends, nfds_t(ends.count), isWhole ? -1 : 100)
        var bytes: [UInt8] = Array(repeating: 0, count: 64)
        for pipe in pipes { while read(pipe.output, &bytes, bytes.count) == bytes.count {} }
    }
}
