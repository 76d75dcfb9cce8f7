import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// Sharing a load with other processes that have the same store open.
///
/// The process that asks the origin holds a claim while the response is on its way, and others wait for its end:
/// nothing else tells one process of another's load. A claim costs two small commits, so it is taken only while the
/// store is open in several processes.
extension Loader {
    /// What a load has to do.
    enum Turn {
        /// Ask the origin. Other processes wait while the claim is held, if there is one.
        case ask(LoadRequest, KeyClaim?)
        /// Another process has stored the response.
        case answered(FetchResponse)
    }

    /// A longer body is not waited for: it is followed while it arrives, or asked for.
    static let longestAwaited: Int64 = 4 << 20

    /// One that takes longer to arrive is followed, too. 1 s.
    static let longestHidden: UInt64 = 1_000_000_000

    /// How long a claim is waited for. It takes the writer lock, which a process that was stopped may hold.
    static let longestClaiming = Duration.milliseconds(100)

    /// Finds out whether another process loads the same response, and waits for that.
    /// - Parameters:
    ///   - joinKey: what loads of the same response have in common; nil for one that is not shared.
    ///   - deadline: of the request. Half of the time that is left stays for the origin.
    func turn(_ pending: LoadRequest, joinKey: String?, deadline: Deadline?) async -> Turn {
        guard let joinKey, isAwaitable(pending), changes.store.isShared else { return .ask(pending, nil) }
        let (clock, key) = (context.configuration.clock, Key(joinKey + " load"))
        let limit = min(context.configuration.otherProcessWait, deadline.map { $0.rest / 2 } ?? .seconds(Int64.max))
        let began = clock.uptime()
        var held: KeyClaim?
        switch await claim(key, within: min(limit, Self.longestClaiming)) {
        case .late: return .ask(pending, nil)
        case .held(let claim):
            held = claim
            // What is arriving now has no process any more.
            await forgetAbandoned(pending)
        // It is not claimed again: of a response that cannot be stored, each process asks for its own at once.
        case .elsewhere:
            if let response = await waitForClaim(key, pending, limit - .nanoseconds(clock.uptime() - began)) {
                return .answered(response)
            }
        }
        // What another process brings may be from before an invalidation by this one.
        guard isSettled(pending) else { return .ask(current(pending), held) }
        guard let result = try? await answering.answer(question(again: pending)) else { return .ask(pending, held) }
        switch result.answer {
        case .response(let response):
            // Stale: it has to be validated anyway, and the others who wait can only have what this load brings.
            if result.refresh != nil { return .ask(pending, held) }
            held?.releaseSoon()
            return .answered(response)
        case .load(let again): return .ask(again.found.isEmpty ? pending : forAll(again), held)
        }
    }

    /// Whether another process may bring the response: a whole one, of which nothing is stored.
    private func isAwaitable(_ pending: LoadRequest) -> Bool {
        if pending.led != nil { return false }
        let sent = pending.forwardedRequest.sent
        return context.configuration.otherProcessWait > .zero && sent.method == .get && pending.found.isEmpty
            && sent.headerFields[.range] == nil && !context.rules.isConditional(sent)
            && context.rules.collapsing(of: pending.subject) == .any && pending.plan.storagePolicy != .memoryOnly
    }

    /// Whether nothing that another process may have asked for was invalidated by this one.
    private func isSettled(_ pending: LoadRequest) -> Bool {
        let generations = changes.generations
        return pending.primary.map { generations.isSettled($0, since: pending.generation) } ?? true
            && pending.search.map { generations.isSettled($0.listKey, since: $0.generation) } ?? true
    }

    /// The request as one that is made now: its answer will be from after all invalidations until here.
    func current(_ pending: LoadRequest) -> LoadRequest {
        var pending = pending
        if let primary = pending.primary { pending.generation = changes.generations.current(primary) }
        if let scope = pending.search { pending.search?.generation = changes.generations.current(scope.listKey) }
        return pending
    }

    /// Waits for the end of another process's load; returns what that brings, if it is long and can be followed while
    /// it arrives.
    private func waitForClaim(_ key: Key, _ pending: LoadRequest, _ limit: Duration) async -> FetchResponse? {
        var pause = Duration.milliseconds(5)
        var waited = Duration.zero
        do {
            while waited < limit, isSettled(pending), try await changes.store.isClaimedElsewhere(key) {
                switch try await arriving(pending) {
                case .nothing: break
                case .unusable: return nil
                case .response(let response): return response
                }
                try await context.configuration.sleep(min(pause, limit - waited))
                waited += pause
                pause = min(pause * 2, .milliseconds(250))
            }
        } catch {
            // Cancelled, or the store fails: what it has now decides.
        }
        return nil
    }
}

/// Claiming within a time limit.
extension Loader {
    private enum Claiming: Sendable {
        case held(KeyClaim)
        /// Another process has it.
        case elsewhere
        /// It has not come in time, or the store fails.
        case late
    }

    /// Claims a key. A claim that comes too late is released when it comes; until then no other is begun, as it would
    /// wait for the same lock.
    private func claim(_ key: Key, within limit: Duration) async -> Claiming {
        guard lateClaims.load(ordering: .relaxed) <= 0 else { return .late }
        let first = FirstValue<Claiming>()
        Task { [self] in
            let claiming = await claim(key)
            if first.set(claiming) { return }
            if case .held(let claim) = claiming { await claim.release() }
            lateClaims.subtract(1, ordering: .relaxed)
        }
        let giveUp: @Sendable () -> Void = { [self] in
            if first.set(.late) { lateClaims.add(1, ordering: .relaxed) }
        }
        let sleep = context.configuration.sleep
        let timer = Task { if (try? await sleep(limit)) != nil { giveUp() } }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await first.value
        } onCancel: {
            giveUp()
        }
    }

    private func claim(_ key: Key) async -> Claiming {
        do {
            return try await changes.store.claim(key).map { .held($0) } ?? .elsewhere
        } catch {
            return .late
        }
    }
}

extension KeyClaim {
    /// Ends it without waiting for that: it takes the writer lock.
    func releaseSoon() { Task { await release() } }
}

/// A value that several tasks may bring, and one waits for. The first counts.
private final class FirstValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: CheckedContinuation<Value, Never>?
    }

    private let state = Mutex(State())

    /// Brings a value; false if there is one already.
    func set(_ value: Value) -> Bool {
        let (isFirst, waiter) = state.withLock { state in
            guard state.value == nil else { return (false, nil as CheckedContinuation<Value, Never>?) }
            state.value = value
            defer { state.waiter = nil }
            return (true, state.waiter)
        }
        waiter?.resume(returning: value)
        return isFirst
    }

    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = continuation }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}
