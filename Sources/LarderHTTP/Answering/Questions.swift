import HTTPCaching
import HTTPTypes
import Larder

/// What a request asks of the store.
struct Questions: Sendable {
    private let context: CacheContext
    private let generations: Generations

    init(_ context: CacheContext, _ generations: Generations) {
        self.context = context
        self.generations = generations
    }

    /// - Parameter isOffline: whether the whole cache is.
    func question(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions, isOffline: Bool
    ) throws(FetchError) -> Question {
        let (configuration, rules) = (context.configuration, context.rules)
        var request = request
        // Fields of the connection go before anything is decided. The origin does not see them, so they must select no
        // stored response either, nor become part of a secondary key.
        request.headerFields = request.headerFields.withoutConnectionFields()
        if !configuration.foldedContentCodings.isEmpty,
            let folded = CacheRules.foldedAcceptEncoding(request.headerFields, to: configuration.foldedContentCodings)
        {
            request.headerFields[.acceptEncoding] = folded
        }
        let url = request.url
        let plan = try FetchPlan(options, context, isOffline: isOffline, url: url)
        let key = rules.cacheKey(for: request)
        if let authorization = configuration.authorization, let key, !request.headerFields.contains(.authorization) {
            request.headerFields[.authorization] = authorization(key.origin)
        }
        var question = Question(
            request: request, subject: request, hasContent: hasContent, primary: nil, plan: plan, url: url,
            generation: 0, needsStored: false)
        try give(key, to: &question, body: body)
        question.needsStored =
            question.reads || plan.policy.contains(.fallbackToCacheIfLoadFails)
            || !rules.isSafe(question.subject.method)
        return question
    }

    /// The same question with the content that its key wants; without a key, where the content is too long for that.
    func question(_ question: Question, content body: RequestBody) throws(FetchError) -> Question {
        var answerable = question
        answerable.wantsContent = false
        if body.bytes != nil { try give(context.rules.cacheKey(for: question.request), to: &answerable, body: body) }
        return answerable
    }

    private func give(_ key: CacheKey?, to question: inout Question, body: RequestBody?) throws(FetchError) {
        guard let key else { return }
        let (request, policy) = (question.request, question.plan.keyPolicy)
        var additions: String?
        do {
            additions = try policy.additions(request, hasContent: question.hasContent, body: body?.bytes)
        } catch {
            throw FetchError(
                .policyFailed, url: question.url, "the key policy failed for \(question.url): \(error)", cause: error)
        }
        if key.method == QueryContent.method {
            guard let content = question.hasContent ? body?.bytes : [] else {
                question.wantsContent = true
                return
            }
            additions = additions.map { $0 + QueryContent.additions(request, content: content) }
            question.content = content
            // It is part of the key now.
            question.hadContent = question.hasContent
            question.hasContent = false
        }
        guard let additions else { return }
        let primary = policy.uri(key) + additions
        if policy.givesOwnKey(to: request.method), request.method != .head {
            // Under a key of its own such a request is as good as a GET.
            question.subject.method = .get
            question.hadContent = question.hasContent
            question.content = body?.bytes
            question.hasContent = false
        }
        question.primary = primary
        question.generation = generations.current(primary)
        question.search = generations.scope(of: key, policy)
    }
}

extension HTTPRequest {
    /// Scheme, authority and path, for messages and the log.
    var url: String { "\(scheme ?? "http")://\(authority ?? "")\(path ?? "")" }
}
