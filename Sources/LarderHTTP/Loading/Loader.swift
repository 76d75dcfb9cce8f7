import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// Loads what the store cannot answer from the origin: alone, or together with others who want the same.
final class Loader: Sendable {
    let context: CacheContext
    private let questions: Questions
    let answering: Answering
    let builder: AnswerBuilder
    let lookup: Lookup
    let changes: StoreChanges
    let origin: OriginClient
    let failures: OriginFailures
    let abandoned: AbandonedLoads
    let held = HeldBytes()
    let joinable: JoinableLoads
    let active: ActiveLoads
    /// What is not read again as it arrives at another process.
    let stalled = StalledParts()
    /// Claims that were not waited for, and are still to come.
    let lateClaims = Atomic(0)

    init(
        _ context: CacheContext, _ questions: Questions, _ answering: Answering, _ builder: AnswerBuilder,
        _ lookup: Lookup,
        _ changes: StoreChanges, _ origin: OriginClient, active: ActiveLoads = ActiveLoads()
    ) {
        self.active = active
        self.context = context
        self.questions = questions
        self.answering = answering
        self.builder = builder
        self.lookup = lookup
        self.changes = changes
        self.origin = origin
        failures = OriginFailures(context.configuration.originFailureMemory)
        abandoned = AbandonedLoads(context.configuration.abandonedLoads)
        joinable = JoinableLoads(window: context.configuration.collapsingWindow) { context.now }
    }

    /// A loader with the same rules and the same store that asks another origin, and shares no load with this one. Its
    /// loads count as those of this one.
    func beside(_ origin: OriginClient) -> Loader {
        Loader(context, questions, answering, builder, lookup, changes, origin, active: active)
    }

    var rules: CacheRules { context.rules }
    private var configuration: HTTPCacheConfiguration { context.configuration }

    /// Loads what the store could not answer. Returns when the head of the answer is there.
    ///
    /// ``Timeouts/total`` applies to each caller separately: a load that others wait for, too, continues without a
    /// caller whose time is over.
    func load(
        _ pending: LoadRequest, body: RequestBody?, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        guard let deadline = pending.plan.deadline else {
            return try await loadUntimed(pending, body: body, onInformational: onInformational)
        }
        let url = pending.request.url
        let error = FetchError(.timedOut, url: url, "the fetch of \(url) took longer than Timeouts.total allows")
        var response = try await deadline.limit(error) { [self] in
            do throws(FetchError) {
                return .success(try await loadUntimed(pending, body: body, onInformational: onInformational))
            } catch {
                return .failure(error)
            }
        }.get()
        if case .live(let pull) = response.body.source {
            response.body = ResponseBody(length: response.body.length, holder: response.body.holder) {
                try await deadline.limit(error as any Error) { () async -> Result<[UInt8]?, any Error> in
                    do { return .success(try await pull()) } catch { return .failure(error) }
                }.get()
            }
        }
        return response
    }

    /// Loads what the store could not answer, however long it takes.
    private func loadUntimed(
        _ pending: LoadRequest, body: RequestBody?, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        if var question = pending.undecided {
            var body = body
            if question.wantsContent, let given = body {
                let content = await QueryContent.gathered(given, limit: configuration.queryContentLimit)
                body = content
                question = try questions.question(question, content: content)
            }
            switch try await answer(question) {
            case .response(let response): return response
            case .load(var decided):
                if let begun = pending.begun { decided.take(begun) }
                return try await loadUntimed(decided, body: body, onInformational: onInformational)
            }
        }
        if pending.plan.isOffline, pending.led?.hasResponse != true {
            let url = pending.request.url
            throw FetchError(.notCached, url: url, "\(url) is not in the cache, and the cache is offline")
        }
        if let led = pending.led {
            let response = try await lead(
                led.handOver(), pending, body: nil, joinKey: led.joinKey, onInformational: onInformational)
            if response.isStored, let primary = pending.primary { joinable.clearPass(primary) }
            return response
        }
        let load = Load(url: pending.request.url, generation: pending.generation)
        if case .followed(let followed)? = pending.begun, let leading = followed.take() {
            return try await join(leading, load, pending, isLater: false, onInformational)
        }
        let pending = sliced(pending)
        guard let (key, isLater) = collapsingKey(pending, body: body) else {
            return try await lead(load, pending, body: body, joinKey: nil, onInformational: onInformational)
        }
        return try await share(load, pending, key: key, isLater: isLater, onInformational)
    }

    /// Loads together with others who want the same, where it may.
    private func share(
        _ load: Load, _ pending: LoadRequest, key: String, isLater: Bool,
        _ onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        var pending = pending
        if !isLater, pending.subject.method == .head || rules.isConditional(pending.subject),
            let leading = joinable.leading(key, generation: load.generation)
        {
            return try await join(leading, load, pending, isLater: false, onInformational)
        }
        var joinKey = key
        if pending.subject.method == .head {
            // What comes has no body: others than HEAD can do nothing with it.
            joinKey += " HEAD"
        } else if pending.forwardedRequest.selected == nil, rules.isConditional(pending.subject) {
            // One alone may ask the origin in its own words. When another comes, one whole response is for all of them.
            switch joinable.enter(key + " if", load, mayPass: false) {
            case .join: break
            case .lead, .leadAfter, .alone:
                return try await lead(
                    load, pending, body: nil, joinKey: key + " if", onInformational: onInformational)
            }
            pending.forwardedRequest.sent.headerFields[.ifNoneMatch] = nil
            pending.forwardedRequest.sent.headerFields[.ifModifiedSince] = nil
        }
        switch joinable.enter(joinKey, load, isLater: isLater) {
        case .lead: return try await lead(load, pending, body: nil, joinKey: joinKey, onInformational: onInformational)
        case .leadAfter(let other):
            return try await lead(
                load, pending, body: nil, joinKey: joinKey, after: other, onInformational: onInformational)
        case .alone:
            if pending.forwardedRequest.purpose == .forward {
                pending.forwardedRequest.sent = pending.forwardedRequest.request
            }
            let response = try await lead(load, pending, body: nil, joinKey: nil, onInformational: onInformational)
            if response.isStored, response.source == .network { joinable.clearPass(joinKey) }
            return response
        case .join(let leading): return try await join(leading, load, pending, isLater: isLater, onInformational)
        }
    }

    /// Asks for what the load was given up that would have brought it: something may be stored by now, or another of
    /// those who waited lead.
    private func ask(
        again pending: LoadRequest, _ onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        switch try await answer(question(again: current(pending))) {
        case .response(let response): return response
        case .load(let pending): return try await loadUntimed(pending, body: nil, onInformational: onInformational)
        }
    }

    /// With the range in whole slices, where that is wanted.
    private func sliced(_ pending: LoadRequest) -> LoadRequest {
        guard let sliceBytes = configuration.sliceBytes, pending.forwardedRequest.purpose == .forward,
            pending.forwardedRequest.reason != .bypass, !pending.plan.policy.contains(.doNotWrite),
            let range = rules.widenedRange(of: pending.forwardedRequest.request, sliceBytes: sliceBytes)
        else { return pending }
        var sliced = pending
        sliced.forwardedRequest.sent.headerFields[.range] = range
        return sliced
    }

    private func join(
        _ leading: Load, _ load: Load, _ pending: LoadRequest, isLater: Bool,
        _ onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        if let response = try await follow(leading, pending, isLater: isLater) { return response }
        if leading.isGivenUp { return try await ask(again: pending, onInformational) }
        // What came is of no use to this request: it goes its own way, and no other waits for it.
        var pending = pending
        if pending.forwardedRequest.purpose == .forward {
            pending.forwardedRequest.sent = pending.forwardedRequest.request
        }
        return try await lead(load, pending, body: nil, joinKey: nil, onInformational: onInformational)
    }

    /// Validates in the background (RFC 5861 section 3), unless a load does already.
    func refresh(_ refresh: LocalResult.Refresh) {
        let forwardedRequest = refresh.forwardedRequest
        var question = refresh.question
        // Content that is gone cannot be sent again; the next request that has to wait brings its own.
        if question.hadContent, question.content == nil { return }
        let load = Load(url: forwardedRequest.request.url, generation: question.generation, isDetached: true)
        let joinKey = sharedKey(refresh.primary, forwardedRequest.request)
        guard case .lead = joinable.enter(joinKey, load, mayPass: false, ofAnyAge: true) else { return }
        // The method stays the one that goes to the origin; of GET and HEAD it is that of the forwarded request.
        if question.request.method == question.subject.method {
            question.request.method = forwardedRequest.request.method
        }
        question.request.headerFields = forwardedRequest.request.headerFields
        question.subject = forwardedRequest.request
        let pending = LoadRequest(question, found: refresh.found, forwardedRequest: forwardedRequest)
        start(
            load, pending, body: question.hadContent ? question.content.map { RequestBody($0) } : nil, joinKey: joinKey,
            isDetached: true,
            onInformational: nil)
    }

    /// The key under which a load may be shared, and whether only with one that is sent later; nil for one that no
    /// other request may share.
    private func collapsingKey(_ pending: LoadRequest, body: RequestBody?) -> (key: String, isLater: Bool)? {
        let subject = pending.subject
        guard configuration.collapsesRequests, let primary = pending.primary, body == nil,
            pending.forwardedRequest.purpose != .complete, pending.forwardedRequest.reason != .bypass,
            pending.plan.policy.isDisjoint(with: [.doNotRead, .doNotWrite, .askIfModified]), pending.plan.user == nil,
            // The conditions of a single user are that user's own business.
            rules.options.mode == .shared || !rules.isConditional(subject)
        else { return nil }
        let collapsing = rules.collapsing(of: subject)
        guard collapsing != .none else { return nil }
        var key = sharedKey(primary, subject)
        if subject.headerFields.contains(.range) {
            // In whole slices, where those are asked for.
            guard let range = pending.forwardedRequest.sent.headerFields[.range] else { return nil }
            key += JoinableLoads.rangeMark + range
        }
        return (key, collapsing == .later)
    }

    /// What loads of a key share. What comes for credentials says little of what comes without them (RFC 9111 section
    /// 3.5).
    private func sharedKey(_ primary: String, _ request: HTTPRequest) -> String {
        let isApart = rules.options.mode == .shared && request.headerFields.contains(.authorization)
        return isApart ? primary + " authorization" : primary
    }

    private func lead(
        _ load: Load, _ pending: LoadRequest, body: RequestBody?, joinKey: String?, after other: Load? = nil,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        start(
            load, pending, body: body, joinKey: joinKey, after: other, isDetached: false,
            onInformational: onInformational)
        let arrival = await load.arrival(isLeader: true)
        load.letGoOfResponse()
        return try arrival.get().response
    }

    private func start(
        _ load: Load, _ pending: LoadRequest, body: RequestBody?, joinKey: String?, after other: Load? = nil,
        isDetached: Bool, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) {
        active.insert(load)
        load.start { [self] in
            defer { active.remove(load) }
            var pending = pending
            if let other, let joinKey {
                _ = await other.arrival()
                // What that one brought may be there now.
                pending = await renewed(pending)
                joinable.promote(joinKey, load)
            }
            // Others may wait longer than the request that came first. Each leaves at its own limit; the load ends with
            // the last.
            let deadline = pending.plan.deadline
            if joinKey != nil, !isDetached { pending.plan.deadline = nil }
            switch await turn(pending, joinKey: isDetached ? nil : joinKey, deadline: deadline) {
            case .answered(let response):
                if let joinKey { joinable.leave(joinKey, load, isShareable: nil) }
                load.arrive(.success(Load.Arrival(response: response, shared: nil)))
            case .ask(let pending, let claim):
                let run = LoadRun(
                    loader: self, load: load, pending: pending, body: body, joinKey: joinKey, isDetached: isDetached,
                    claim: claim, onInformational: onInformational)
                await run.run()
                await claim?.release()
            }
        }
    }

    /// The same request with what is stored by now.
    private func renewed(_ pending: LoadRequest) async -> LoadRequest {
        guard case .load(let renewed)? = try? await answer(question(again: pending)) else { return pending }
        return forAll(renewed)
    }

    /// The question whose answer a request was.
    func question(again pending: LoadRequest) -> Question {
        Question(
            request: pending.request, subject: pending.subject, hasContent: false, primary: pending.primary,
            plan: pending.plan, url: pending.request.url, generation: pending.generation,
            search: pending.search, needsStored: true)
    }

    /// A request whose answer is for others, too.
    func forAll(_ pending: LoadRequest) -> LoadRequest {
        var renewed = pending
        if renewed.forwardedRequest.selected == nil {
            // For others than those who have what the conditions name.
            renewed.forwardedRequest.sent.headerFields[.ifNoneMatch] = nil
            renewed.forwardedRequest.sent.headerFields[.ifModifiedSince] = nil
        }
        return sliced(renewed)
    }

    /// What the store says to a question; starts the validation in the background that this takes.
    func answer(_ question: Question) async throws(FetchError) -> LocalAnswer {
        let result = try await answering.answer(question)
        if let refresh = result.refresh { self.refresh(refresh) }
        return result.answer
    }
}
