import HTTPCaching
import HTTPTypes
import Larder

/// What a request asks of the store.
extension HTTPCache {
    func question(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) throws(FetchError) -> Question {
        var request = request
        // Fields of the connection go before anything is decided. The origin does not see them, so they must select no
        // stored response either, nor become part of a secondary key.
        request.headerFields = request.headerFields.withoutConnectionFields()
        if !configuration.foldedContentCodings.isEmpty,
            let folded = CacheRules.foldedAcceptEncoding(request.headerFields, to: configuration.foldedContentCodings)
        {
            request.headerFields[.acceptEncoding] = folded
        }
        let url = Self.url(of: request)
        let plan = try FetchPlan(options, self, url: url)
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
        if body.bytes != nil { try give(rules.cacheKey(for: question.request), to: &answerable, body: body) }
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
                .policyFailed, url: question.url, "the key policy failed for \(question.url): \(error)")
        }
        if key.method == Self.queryMethod {
            guard let content = question.hasContent ? body?.bytes : [] else {
                question.wantsContent = true
                return
            }
            additions = additions.map { $0 + Self.queryAdditions(request, content: content) }
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
        question.search = scope(of: key, policy)
    }

    /// Where responses to other queries lie that may answer a key: only where the key is the URI and nothing else.
    func scope(of key: CacheKey, _ policy: KeyPolicy) -> SearchScope? {
        guard policy.isDefault, key.method == nil else { return nil }
        var scope = SearchScope(uri: key.uri)
        scope.generation = generations.current(scope.listKey)
        return scope
    }

    static let queryMethod = "QUERY"
}
