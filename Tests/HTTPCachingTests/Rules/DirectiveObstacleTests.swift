import HTTPScenarios
import HTTPTypes
import TestSupport
import Testing

@testable import HTTPCaching

/// What status and directives say alone is what all of a response says.
struct DirectiveObstacleTests {
    private static let lines = [
        "Cache-Control: no-store", "Cache-Control: max-age=60", "Cache-Control: private", "Cache-Control: public",
        "Cache-Control: must-understand, no-store", "Cache-Control: private=\"a\"", "Cache-Control: s-maxage=0",
        "Surrogate-Control: no-store", "Surrogate-Control: max-age=60", "Surrogate-Control: =", "ETag: \"a\"",
        "Expires: 0", "Vary: *", "Set-Cookie: a=b", "Pragma: no-cache",
    ]

    @Test(arguments: [CacheMode.shared, .private], [true, false])
    func theyDecideTheSame(_ mode: CacheMode, _ isTargeted: Bool) throws {
        var options = CachingOptions()
        options.mode = mode
        if isTargeted { options.targetedFields = [HTTPField.Name("Surrogate-Control")!] }
        let rules = CacheRules(options)
        var random = SeededGenerator(seed: 1)
        var count = 0
        var onlyCacheControl = 0
        for _ in 0..<2_000 {
            let status = [200, 200, 200, 201, 204, 302, 404, 412, 503, 599].randomElement(using: &random) ?? 200
            let picked = (0..<Int.random(in: 0...4, using: &random)).compactMap { _ in
                Self.lines.randomElement(using: &random)
            }
            var request = HTTPRequest(method: .get, scheme: "http", authority: "a", path: "/")
            if Int.random(in: 0..<4, using: &random) == 0 { request.headerFields[.authorization] = "x" }
            let fields = HTTPFields(
                picked.map { line in
                    let parts = line.split(separator: ": ", maxSplits: 1)
                    return HTTPField(name: HTTPField.Name(String(parts[0]))!, value: String(parts[1]))
                })
            let head = HTTPResponse(status: .init(code: status), headerFields: fields)
            var directives = head
            directives.headerFields = HTTPFields(
                fields.filter { rules.directiveFields.contains($0.name.canonicalName) })
            if directives.headerFields.count == 1, let value = directives.headerFields[.cacheControl] {
                onlyCacheControl += 1
                #expect(
                    rules.obstacle(byCacheControl: Array(value.utf8), status: head.status, to: request)
                        == rules.obstacle(byDirectives: directives, to: request))
            }
            let now = Instant(seconds: 1_000_000)
            let decision = rules.received(
                head, for: ForwardedRequest(request: request, reason: .uriMiss), stored: [], requestTime: now,
                responseTime: now)
            guard let obstacle = rules.obstacle(byDirectives: directives, to: request) else {
                // Then it is up to the rest.
                if let other = decision.obstacle {
                    #expect(![.noStore, .privateResponse, .authorization].contains(other))
                }
                continue
            }
            count += 1
            #expect(decision.obstacle == obstacle, "\(status) \(picked)")
            #expect(decision.store == nil && decision.invalidation == nil)
            if case .asReceived = decision.answer {} else { Issue.record("\(decision.answer)") }
        }
        #expect(count > 300 && onlyCacheControl > 300)
    }
}
