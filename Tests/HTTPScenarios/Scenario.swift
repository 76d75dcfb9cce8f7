import HTTPCaching
import HTTPTypes
import Testing

/// A sequence of requests through a cache, in the manner of conformance suites for caches: each step says
/// what the client sends, what the origin would answer, and what must be seen.
package struct Scenario: Sendable, CustomTestStringConvertible {
    /// What a step must show.
    package enum Expectation: Sendable {
        /// Anything.
        case any
        /// Answered without asking the origin.
        case cached
        /// The origin was asked, without the cache's validators.
        case notCached
        /// The origin was asked with this `If-None-Match`.
        case validatedByTag
        /// The origin was asked with `If-Modified-Since`.
        case validatedByDate
    }

    /// How much a specification wants the behaviour.
    package enum Kind: Sendable {
        /// A MUST or MUST NOT.
        case required
        /// Allowed by the specification and good for the user.
        case optimal
    }

    package struct Step: Sendable {
        package var method = "GET"
        package var path = "/resource"
        package var requestLines: [String] = []
        package var status = 200
        package var responseLines: [String] = []
        package var body: String?
        package var isOriginGone = false
        /// Seconds that pass before the step.
        package var after = 0.0
        package var expect = Expectation.any
        package var expectStatus: Int?
        package var expectLines: [String] = []
        package var expectMissing: [String] = []
        package var expectBody: String?
        package var expectSent: [String] = []

        package init(
            method: String = "GET", path: String = "/resource", requestLines: [String] = [], status: Int = 200,
            responseLines: [String] = [], body: String? = nil, isOriginGone: Bool = false, after: Double = 0,
            expect: Expectation = .any, expectStatus: Int? = nil, expectLines: [String] = [],
            expectMissing: [String] = [], expectBody: String? = nil, expectSent: [String] = []
        ) {
            self.method = method
            self.path = path
            self.requestLines = requestLines
            self.status = status
            self.responseLines = responseLines
            self.body = body
            self.isOriginGone = isOriginGone
            self.after = after
            self.expect = expect
            self.expectStatus = expectStatus
            self.expectLines = expectLines
            self.expectMissing = expectMissing
            self.expectBody = expectBody
            self.expectSent = expectSent
        }

        /// Whether the request has content.
        package var hasContent: Bool { !["GET", "HEAD", "OPTIONS"].contains(method) }
    }

    package var name: String
    package var kind: Kind = .required
    package var mode: CacheMode = .shared
    package var steps: [Step]

    package var testDescription: String { name }

    package init(_ name: String, _ kind: Kind = .required, _ mode: CacheMode = .shared, _ steps: Step...) {
        self.name = name
        self.kind = kind
        self.mode = mode
        self.steps = steps
    }

    /// Two requests: the first is answered with `lines`, the second, 3 seconds later, must be as expected.
    package static func reuse(
        _ name: String, _ kind: Kind, _ lines: [String], _ expect: Expectation, status: Int = 200, after: Double = 3,
        mode: CacheMode = .shared
    ) -> Scenario {
        Scenario(
            name, kind, mode, Step(status: status, responseLines: lines),
            Step(status: status, responseLines: lines, after: after, expect: expect))
    }

    /// Reports what does not hold of a step.
    package func check(_ step: Step, _ outcome: Outcome, now: Instant, _ place: String) {
        let sent = outcome.sent.first?.headerFields
        let note = "\(place): \(outcome.status) \(outcome.fields) sent \(outcome.sent)"
        switch step.expect {
        case .any: break
        case .cached: #expect(outcome.isCached, "\(note)")
        case .notCached: #expect(!outcome.isCached && sent != nil, "\(note)")
        case .validatedByTag: #expect(sent?.contains(.ifNoneMatch) == true, "\(note)")
        case .validatedByDate: #expect(sent?.contains(.ifModifiedSince) == true, "\(note)")
        }
        if let status = step.expectStatus { #expect(outcome.status == status, "\(note)") }
        if let body = step.expectBody { #expect(outcome.text == body, "\(note)") }
        for field in fields(step.expectLines, now: now) {
            #expect(outcome.fields[values: field.name].contains(field.value), "\(place): \(field) in \(outcome.fields)")
        }
        for name in step.expectMissing {
            #expect(!outcome.fields.contains(HTTPField.Name(name)!), "\(place): no \(name) in \(outcome.fields)")
        }
        for field in fields(step.expectSent, now: now) {
            #expect(
                sent?[values: field.name].contains(field.value) == true,
                "\(place): sent \(field), not \(String(describing: sent))")
        }
    }
}

extension Scenario.Step {
    /// The scripted answer; 304 when the request's validators are those of the script.
    package func scriptedAnswer(to request: HTTPRequest, now: Instant) -> ScriptedAnswer {
        var head = HTTPResponse(status: .init(code: status), headerFields: fields(responseLines, now: now))
        let tags = request.headerFields[values: .ifNoneMatch].joined(separator: ",")
        let isSameTag = head.headerFields[.eTag].map { tags.contains($0) } ?? false
        let isSameDate =
            head.headerFields[.lastModified] != nil
            && head.headerFields[.lastModified] == request.headerFields[.ifModifiedSince]
        if status == 200, isSameTag || (tags.isEmpty && isSameDate) {
            head.status = .notModified
            return ScriptedAnswer(head: head, body: [])
        }
        return ScriptedAnswer(head: head, body: Array((method == "HEAD" ? "" : body ?? "body").utf8))
    }
}
