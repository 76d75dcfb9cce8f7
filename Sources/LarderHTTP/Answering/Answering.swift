import HTTPCaching
import HTTPTypes
import Larder

/// Answers questions from the store, as far as the rules and the caller's policy let it.
struct Answering: Sendable {
    private let context: CacheContext
    private let lookup: Lookup
    private let builder: AnswerBuilder

    init(_ context: CacheContext, _ lookup: Lookup, _ builder: AnswerBuilder) {
        self.context = context
        self.lookup = lookup
        self.builder = builder
    }

    /// The answer at once: for an event loop. Where that would take waiting for a disk, the answer is to load, which
    /// asks the store again.
    func answerAtOnce(_ question: Question) throws(FetchError) -> LocalResult {
        if question.wantsContent { return .init(answer: .load(LoadRequest(undecided: question))) }
        guard question.needsStored, let primary = question.primary else { return try answer(question, []) }
        guard let found = lookup.findAtOnce(primary, question.search, for: question.subject) else {
            return .init(answer: .load(LoadRequest(undecided: question)))
        }
        let result = try answer(question, found)
        guard lookup.isEncrypted, case .response(var response) = result.answer, response.body.isDecryptedFirst else {
            return result
        }
        // Damage is for a load to find, which may wait.
        guard response.body.isDecryptedAtOnce, let body = try? response.body.decrypted() else {
            return .init(answer: .load(LoadRequest(undecided: question)))
        }
        response.body = body
        return LocalResult(answer: .response(response), refresh: result.refresh)
    }

    /// As above, waiting on the calling thread.
    func answerWaiting(_ question: Question) throws(FetchError) -> LocalResult {
        if question.wantsContent { return .init(answer: .load(LoadRequest(undecided: question))) }
        var found: [ResponseStore.Found] = []
        if question.needsStored, let primary = question.primary {
            found = lookup.findWaiting(primary, question.search, for: question.subject)
        }
        return try answer(question, found)
    }

    /// As above; the cooperative pool does not wait.
    func answer(_ question: Question) async throws(FetchError) -> LocalResult {
        if question.wantsContent { return .init(answer: .load(LoadRequest(undecided: question))) }
        var found: [ResponseStore.Found] = []
        if question.needsStored, let primary = question.primary {
            found = await lookup.find(primary, question.search, for: question.subject)
        }
        let result = try answer(question, found)
        guard lookup.isEncrypted, case .response(var response) = result.answer, response.body.isDecryptedFirst else {
            return result
        }
        do {
            response.body = try await response.body.decrypted()
            return LocalResult(answer: .response(response), refresh: result.refresh)
        } catch {
            guard let primary = question.primary else { return result }
            return try answer(question, await lookup.findDecrypted(primary, question.search, for: question.subject))
        }
    }

    private func answer(
        _ question: Question, _ found: [ResponseStore.Found]
    ) throws(FetchError) -> LocalResult {
        let now = context.now
        let (subject, plan, url, hasContent) = (question.subject, question.plan, question.url, question.hasContent)
        guard question.reads else {
            if plan.isOffline || plan.policy.contains(.doNotLoad) { throw notCached(url) }
            let forwardedRequest = ForwardedRequest(request: subject, reason: .bypass, hasContent: hasContent)
            return .init(answer: .load(LoadRequest(question, found: found, forwardedRequest: forwardedRequest)))
        }
        let use = try use(of: found, for: subject, plan: plan, now: now, url: url)
        if use == .use, !hasContent, let served = builder.serveRegardless(subject, found, now: now) {
            return .init(answer: .response(builder.response(from: served, found, now: now)))
        }
        if plan.policy.contains(.doNotLoad) { throw notCached(url) }
        let asksFirst = use == .load || plan.policy.contains(.askIfModified)
        var found = found
        if asksFirst {
            // Also when the origin fails: what had to be validated before its use is not used without.
            for index in found.indices { found[index].response.isInvalidated = true }
        }
        let stored = found.map(\.response)
        switch context.rules.reuse(
            subject, hasContent: hasContent, stored: stored, now: now, isDisconnected: plan.isOffline)
        {
        case .serve(let served):
            if let validation = served.background, !context.configuration.revalidatesInBackground {
                return .init(answer: .load(LoadRequest(question, found: found, forwardedRequest: validation)))
            }
            var result = LocalResult(answer: .response(builder.response(from: served, found, now: now)))
            if let background = served.background, let primary = question.primary {
                result.refresh = LocalResult.Refresh(
                    forwardedRequest: background, question: question, primary: primary, found: found)
            }
            return result
        case .refuse(let head):
            if let whole = builder.serveWhole(subject, found, now: now, isDisconnected: plan.isOffline) {
                return .init(answer: .response(builder.response(from: whole.served, whole.found, now: now)))
            }
            if plan.isOffline { throw notCached(url) }
            return .init(answer: .response(builder.refusal(head)))
        case .forward(let forwardedRequest):
            return .init(answer: .load(LoadRequest(question, found: found, forwardedRequest: forwardedRequest)))
        }
    }

    /// What the policy says of what is stored, before the rules are asked.
    private func use(
        of found: [ResponseStore.Found], for request: HTTPRequest, plan: FetchPlan, now: Instant, url: String
    ) throws(FetchError) -> Reuse {
        if let user = plan.user {
            guard let candidate = found.first(where: { $0.response.selecting.matches(request.headerFields) }) else {
                return .followRules
            }
            do {
                return try user.reuse(candidate.response, for: request, now: now)
            } catch {
                throw FetchError(.policyFailed, url: url, "the policy failed for \(url): \(error)", cause: error)
            }
        }
        return plan.policy.ignoresExpiry ? .use : .followRules
    }

    private func notCached(_ url: String) -> FetchError {
        FetchError(.notCached, url: url, "\(url) is not in the cache, and loading it is not allowed")
    }
}
