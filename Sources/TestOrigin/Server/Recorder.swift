import NIOCore
import Locks

/// Keeps the history, and wakes tasks that wait for a part of it.
final class Recorder: Sendable {
    private struct State {
        var history = OriginHistory()
        var channels: [Int: any Channel] = [:]
        var counts: [String: Int] = [:]
        var watchers: [(condition: @Sendable (OriginHistory) -> Bool, continuation: CheckedContinuation<Void, Never>)] =
            []
    }

    private let state = Mutex(State())

    var history: OriginHistory { state.withLock { $0.history } }

    func connectionOpened(_ channel: any Channel) -> Int {
        let number = change { state in
            state.history.connectionsAccepted += 1
            state.history.connectionsOpen += 1
            state.channels[state.history.connectionsAccepted] = channel
            return state.history.connectionsAccepted
        }
        channel.closeFuture.whenComplete { _ in
            self.change { state in
                state.channels[number] = nil
                state.history.connectionsOpen -= 1
            }
        }
        return number
    }

    /// Records a head, and assigns the request its places.
    func began(_ request: inout OriginRequest) {
        request = change { [request] state in
            var request = request
            request.order = state.history.requests.count + 1
            request.count = state.counts[request.path, default: 0] + 1
            state.counts[request.path] = request.count
            state.history.requests.append(request)
            return request
        }
    }

    func completed(_ request: OriginRequest) {
        change { $0.history.requests[request.order - 1] = request }
    }

    func failed(_ message: String) {
        change { $0.history.failures.append(message) }
    }

    func wait(until condition: @escaping @Sendable (OriginHistory) -> Bool) async {
        await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if condition(state.history) { return true }
                state.watchers.append((condition, continuation))
                return false
            }
            if holds { continuation.resume() }
        }
    }

    func closeAll() async {
        for channel in state.withLock({ Array($0.channels.values) }) {
            try? await channel.close().get()
        }
    }

    @discardableResult
    private func change<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
        let (result, woken) = state.withLock { state in
            let result = body(&state)
            let woken = state.watchers.filter { $0.condition(state.history) }
            if !woken.isEmpty { state.watchers.removeAll { $0.condition(state.history) } }
            return (result, woken.map(\.continuation))
        }
        for continuation in woken { continuation.resume() }
        return result
    }
}
