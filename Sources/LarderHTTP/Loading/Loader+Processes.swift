import HTTPCaching
import HTTPTypes
import Larder

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

    /// A longer body is not waited for.
    static let longestAwaited: Int64 = 4 << 20

    /// Finds out whether another process loads the same response, and waits for that.
    /// - Parameter joinKey: what loads of the same response have in common; nil for one that is not shared.
    func turn(_ pending: LoadRequest, joinKey: String?) async -> Turn {
        guard let joinKey, isAwaitable(pending), changes.store.isShared else { return .ask(pending, nil) }
        let key = Key(joinKey + " load")
        do {
            let claim = try await changes.store.claim(key)
            // It is not claimed again: of a response that cannot be stored, each process asks for its own at once.
            if claim == nil { try await waitForClaim(key) }
            switch try await answer(question(again: pending)) {
            case .response(let response):
                await claim?.release()
                return .answered(response)
            case .load(let again): return .ask(again.found.isEmpty ? pending : forAll(again), claim)
            }
        } catch {
            // Each process asks for itself.
            return .ask(pending, nil)
        }
    }

    /// Whether another process may bring the response: a whole one, of which nothing is stored.
    private func isAwaitable(_ pending: LoadRequest) -> Bool {
        let sent = pending.forwardedRequest.sent
        return context.configuration.otherProcessWait > .zero && sent.method == .get && pending.found.isEmpty
            && sent.headerFields[.range] == nil && !context.rules.isConditional(sent)
            && context.rules.collapsing(of: pending.subject) == .any && pending.plan.storagePolicy != .memoryOnly
    }

    private func waitForClaim(_ key: Key) async throws {
        let limit = context.configuration.otherProcessWait
        var pause = Duration.milliseconds(5)
        var waited = Duration.zero
        while waited < limit, try await changes.store.isClaimedElsewhere(key) {
            try await context.configuration.sleep(min(pause, limit - waited))
            waited += pause
            pause = min(pause * 2, .milliseconds(250))
        }
    }
}
