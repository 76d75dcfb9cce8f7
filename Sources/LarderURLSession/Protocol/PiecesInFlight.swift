import Foundation
import Locks

/// The pieces of a body that the session or its delegate still has.
///
/// A session queues what a delegate has not taken, without a limit. So a piece is memory that says when it is released,
/// and a load waits while too much is out. A delegate that keeps its pieces releases none: when nothing was released
/// for some seconds the load continues without waiting.
final class PiecesInFlight: Sendable {
    private struct State {
        var bytes = 0
        var releases = 0
        var waiter: CheckedContinuation<Void, Never>?
        var isOff = false
    }

    /// Bytes that may be out before a load waits.
    static let limit = 4 << 20
    /// How long nothing may be released before a delegate counts as one that keeps its pieces.
    private static let patience = DispatchTimeInterval.seconds(5)

    private let state = Mutex(State())

    /// A piece that is counted until its last copy is gone.
    func piece(_ bytes: [UInt8]) -> Data {
        let count = bytes.count
        guard count > 0 else { return Data() }
        state.withLock { $0.bytes += count }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
        bytes.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress!, byteCount: count) }
        return Data(
            bytesNoCopy: memory, count: count,
            deallocator: .custom { [self] memory, _ in
                memory.deallocate()
                released(count)
            })
    }

    private func released(_ count: Int) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.bytes -= count
            state.releases += 1
            guard state.bytes < Self.limit else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns when another piece may be sent, or the task is cancelled.
    func room() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let releases = state.withLock { state -> Int? in
                    if state.isOff || state.bytes < Self.limit || Task.isCancelled { return nil }
                    state.waiter = waiter
                    return state.releases
                }
                guard let releases else { return waiter.resume() }
                watch(releases)
            }
        } onCancel: {
            stopWaiting()
        }
    }

    private func stopWaiting() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isOff = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    private func watch(_ releases: Int) {
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { [self] in
            let (isWaiting, now) = state.withLock { ($0.waiter != nil, $0.releases) }
            guard isWaiting else { return }
            if now == releases { stopWaiting() } else { watch(now) }
        }
    }
}
