import HTTPScenarios
import HTTPTypes

@testable import HTTPCaching

/// A cache in memory that does what ``CacheRules`` says and nothing else: what a joining layer has to do, in its
/// shortest form.
struct ModelCache {
    struct Entry {
        var response: StoredResponse
        var body: [UInt8]
        /// The bytes of a range of the representation.
        func bytes(_ range: Range<Int64>) -> [UInt8] {
            if response.body.isComplete { return Array(body[Int(range.lowerBound)..<Int(range.upperBound)]) }
            let offset = Int(response.body.available.storageOffset(of: range.lowerBound)!)
            return Array(body[offset..<offset + range.count])
        }
    }

    let rules: CacheRules
    var entries: [CacheKey: [Entry]] = [:]
    var now: Instant

    init(_ options: CachingOptions = .gateway, now: Instant = start) {
        rules = CacheRules(options)
        self.now = now
    }

    mutating func advance(_ seconds: Double) { now = now.after(seconds) }

    /// Handles a request. `origin` gets what is forwarded; nil means that it cannot be reached.
    mutating func handle(
        _ request: HTTPRequest, hasContent: Bool = false, isDisconnected: Bool = false,
        origin: (HTTPRequest) -> ScriptedAnswer?
    ) -> Outcome {
        let key = rules.cacheKey(for: request)
        let found = key.flatMap { entries[$0] } ?? []
        switch rules.reuse(
            request, hasContent: hasContent, stored: found.map(\.response), now: now, isDisconnected: isDisconnected)
        {
        case .refuse(let head): return Outcome(status: head.status.code, fields: head.headerFields, body: [])
        case .serve(let served):
            var outcome = answer(served, found)
            outcome.isCached = true
            outcome.cacheStatus = served.cacheStatus(name: rules.options.cacheName).fieldValue
            if let background = served.background {
                outcome.sent = exchange(background, key: key, origin: origin).sent
            }
            return outcome
        case .forward(let forwarded): return exchange(forwarded, key: key, origin: origin)
        }
    }

    private mutating func exchange(
        _ exchange: ForwardedRequest, key: CacheKey?, origin: (HTTPRequest) -> ScriptedAnswer?, depth: Int = 0
    ) -> Outcome {
        precondition(depth < 3, "a request must not go round in circles")
        let found = key.flatMap { entries[$0] } ?? []
        let requestTime = now
        guard let answer = origin(exchange.sent) else {
            guard let served = rules.failed(exchange, stored: found.map(\.response), now: now) else {
                return Outcome(status: 502, fields: [:], body: [], sent: [exchange.sent])
            }
            var outcome = self.answer(served, found)
            outcome.sent = [exchange.sent]
            outcome.isCached = true
            return outcome
        }
        now = now.after(answer.delaySeconds)
        let decision = rules.received(
            answer.head, for: exchange, stored: found.map(\.response), requestTime: requestTime, responseTime: now)
        var current = found
        for update in decision.updates { current[update.index].response = update.response }
        var outcome: Outcome
        switch decision.answer {
        case .unusable:
            return Outcome(status: 502, fields: [:], body: [], sent: [exchange.sent], obstacle: decision.obstacle)
        case .asReceived:
            outcome = Outcome(status: answer.head.status.code, fields: answer.head.headerFields, body: answer.body)
        case .serve(let served): outcome = self.answer(served, current)
        case .combined(let combination):
            var runs = combination.stored.ranges.map { ($0.lowerBound, current[combination.index].bytes($0)) }
            runs.append((combination.received.lowerBound, answer.body))
            for gap in combination.missing {
                var again = exchange.sent
                again.headerFields[.range] = "bytes=\(gap.lowerBound)-\(gap.upperBound - 1)"
                runs.append((gap.lowerBound, origin(again)?.body ?? []))
            }
            let body = runs.sorted { $0.0 < $1.0 }.flatMap { $0.1 }
            outcome = Outcome(status: 200, fields: combination.head.headerFields, body: body)
        case .fetch(let again):
            store(decision, answer, current, key)
            var outcome = self.exchange(again, key: key, origin: origin, depth: depth + 1)
            outcome.sent.insert(exchange.sent, at: 0)
            return outcome
        }
        outcome.obstacle = decision.obstacle
        outcome.sent = [exchange.sent]
        outcome.cacheStatus =
            rules.cacheStatus(
                forwarded: exchange, receivedStatus: answer.head.status.code, sentStatus: outcome.status,
                stored: decision.store?.policy, now: now
            ).fieldValue
        store(decision, answer, current, key)
        return outcome
    }

    private mutating func store(
        _ decision: ReceivedDecision, _ answer: ScriptedAnswer, _ current: [Entry], _ key: CacheKey?
    ) {
        if let invalidation = decision.invalidation {
            for key in invalidation.keys { entries[key] = nil }
            for (key, list) in entries where key.origin == invalidation.origin {
                entries[key] = list.filter { Set($0.response.groups).isDisjoint(with: invalidation.groups) }
            }
        }
        guard let key, decision.invalidation == nil || decision.store != nil else { return }
        var gone = Set(decision.removals)
        var added: Entry?
        if let new = decision.store,
            let finished = new.finished(receivedBytes: Int64(answer.body.count), isComplete: answer.isComplete)
        {
            gone.formUnion(new.replaces)
            var body = answer.body
            if let index = new.combines {
                let received = new.firstPosition..<(new.firstPosition + Int64(answer.body.count))
                body = finished.body.available.ranges.flatMap { range in
                    range.flatMap { position -> [UInt8] in
                        received.contains(position)
                            ? [answer.body[Int(position - received.lowerBound)]]
                            : current[index].bytes(position..<position + 1)
                    }
                }
            }
            added = Entry(response: finished, body: body)
        }
        entries[key] = current.indices.filter { !gone.contains($0) }.map { current[$0] } + (added.map { [$0] } ?? [])
    }

    private func answer(_ served: ServedResponse, _ entries: [Entry]) -> Outcome {
        let entry = entries[served.index]
        let body: [UInt8]
        switch served.content {
        case .none: body = []
        case .whole: body = entry.body
        case .range(let range): body = entry.bytes(range)
        case .multipart(let parts):
            body =
                parts.ranges.indices.flatMap { parts.header(of: $0) + entry.bytes(parts.ranges[$0]) } + parts.trailer
        }
        return Outcome(status: served.head.status.code, fields: served.head.headerFields, body: body)
    }
}

extension Scenario {
    /// Runs the steps against the rules alone and reports what does not hold.
    func run(_ options: CachingOptions? = nil) {
        var options = options ?? .gateway
        options.mode = mode
        var cache = ModelCache(options)
        for (number, step) in steps.enumerated() {
            cache.advance(step.after)
            let now = cache.now
            var request = request(step.method, step.path)
            request.headerFields = fields(step.requestLines, now: now)
            let outcome = cache.handle(request, hasContent: step.hasContent) { sent in
                step.isOriginGone ? nil : step.scriptedAnswer(to: sent, now: now)
            }
            check(step, outcome, now: now, "\(name), step \(number + 1)")
        }
    }
}
