import Foundation
import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Locks
import TestOrigin
import TestSupport
import Testing

/// Many users with secrets of their own, both protocols at once, and an origin that answers with all caching fields at
/// random: no secret ever reaches another user.
///
/// The origin is honest: what has a user's secret in it says so in one of the ways that HTTP has for that. A response
/// that calls itself public and holds a secret would be the origin's leak. `LARDER_SECRETS_REQUESTS` sets the requests
/// of each user, 60 by default; a failure names the seed.
struct SecretsTests {
    @Test(arguments: [CachingOptions.SetCookiePolicy.requireExplicitFreshness, .neverStore])
    func noSecretReachesAnotherUser(_ cookies: CachingOptions.SetCookiePolicy) async throws {
        let seed = UInt64.random(in: 0..<1_000_000)
        let count = ProcessInfo.processInfo.environment["LARDER_SECRETS_REQUESTS"].flatMap(Int.init) ?? 60
        let clock = TestClock()
        let script = SecretOrigin(seed: seed, sharesCookies: cookies == .neverStore)
        let origin = try await TestOrigin.start { script.answer($0) }
        let inner = NIOTransport()
        try await withDirectory { directory in
            let files = try TestCertificate.write(to: directory)
            try await withGateway(transport: inner) {
                $0.routes.otherwise = try OriginServer(origin.url)
                $0.tls = GatewayTLS(certificateFile: files.certificate, keyFile: files.key)
            } caching: {
                $0.clock = clock
                $0.caching.setCookie = cookies
            } _: { setting in
                let tlsPort = setting.gateway.tlsAddress?.port ?? 0
                let found = await withTaskGroup(of: [String].self) { group in
                    for user in 0..<12 {
                        group.addTask {
                            var client = SecretUser(number: user, seed: seed, clock: clock)
                            do {
                                return user % 2 == 0
                                    ? try await client.runHTTP1(port: setting.port, requests: count)
                                    : try await client.runHTTP2(port: tlsPort, requests: count)
                            } catch {
                                return ["user \(user): \(error)"]
                            }
                        }
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                #expect(found.isEmpty, "seed \(seed)")
                let readings = await setting.gateway.readCounters()
                #expect(readings.requests >= UInt64(12 * count))
            }
        }
        await inner.close()
        await origin.stop()
        // A run in which nothing was ever answered from the store would show nothing.
        #expect(script.requests < 12 * count)
    }
}

/// The secret of a user. Every user's is found by the same pattern.
func secret(of user: Int) -> String { "secret-\(user)-user" }

/// The numbers of the users whose secrets are in a text.
func secrets(in text: some StringProtocol) -> Set<Int> {
    var users: Set<Int> = []
    var rest = text[...]
    while let start = rest.firstRange(of: "secret-") {
        rest = rest[start.upperBound...]
        if let number = Int(rest.prefix { $0.isNumber }) { users.insert(number) }
    }
    return users
}

extension SeededGenerator {
    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &self) == 0 }
    mutating func pick<T>(_ list: [T]) -> T { list[Int.random(in: 0..<list.count, using: &self)] }
}

/// A user, who sends a secret in one place or another and looks for those of others in every answer.
struct SecretUser {
    let number: Int
    let clock: TestClock
    private var random: SeededGenerator
    private var tags: [String] = []

    init(number: Int, seed: UInt64, clock: TestClock) {
        self.number = number
        self.clock = clock
        random = SeededGenerator(seed: seed &+ UInt64(number) &* 7_919)
    }

    private mutating func request(_ turn: Int) -> (HTTPRequest, body: String?) {
        let mine = secret(of: number)
        var fields = HTTPFields()
        var path = "/\(Int.random(in: 0..<6, using: &random))"
        var (method, body) = (HTTPRequest.Method.get, String?.none)
        switch Int.random(in: 0..<8, using: &random) {
        case 0: fields[.cookie] = "sid=\(mine)"
        case 1: fields[.authorization] = "Bearer \(mine)"
        case 2: fields[HTTPField.Name("X-Token")!] = mine
        case 3: path += "?token=\(mine)"
        case 4:
            method = random.pick([.post, .put, .delete])
            body = mine
        case 5: method = .head
        default: break
        }
        if random.chance(4), let tag = tags.last { fields[.ifNoneMatch] = tag }
        if random.chance(5), method == .get { fields[.range] = random.pick(["bytes=0-9", "bytes=5-", "bytes=-7"]) }
        if random.chance(6) { fields[.cacheControl] = random.pick(["no-cache", "max-age=0", "max-stale", "no-store"]) }
        if random.chance(4) { fields[.acceptLanguage] = random.pick(["en", "fr", "en, fr", "fr, en"]) }
        if random.chance(10) { clock.advance(by: .milliseconds(Int64.random(in: 100..<3_000, using: &random))) }
        return (
            HTTPRequest(method: method, scheme: "http", authority: "example.org", path: path, headerFields: fields),
            body
        )
    }

    private mutating func check(_ text: String, _ turn: Int) -> [String] {
        let others = secrets(in: text).subtracting([number])
        return others.isEmpty ? [] : ["user \(number), request \(turn): secrets of \(others.sorted()) in \(text)"]
    }

    mutating func runHTTP1(port: Int, requests: Int) async throws -> [String] {
        let client = try await RawClient.connect(to: port)
        var found: [String] = []
        for turn in 0..<requests {
            let (request, body) = request(turn)
            var text = "\(request.method.rawValue) \(request.path ?? "/") HTTP/1.1\r\nHost: example.org\r\n"
            for field in request.headerFields { text += "\(field.name.rawName): \(field.value)\r\n" }
            if random.chance(5) {
                text +=
                    "Connection: " + random.pick(["Cookie", "Authorization", "X-Token", "Accept-Language"]) + "\r\n"
            }
            if let body { text += "Content-Length: \(body.utf8.count)\r\n\r\n" + body } else { text += "\r\n" }
            try await client.send(text)
            while true {
                let response = try await client.response(to: request.method.rawValue)
                let lines = response.fields.map { "\($0.name): \($0.value)" } + response.trailers.map(\.value)
                found += check(lines.joined(separator: "\n") + "\n" + response.text, turn)
                if let tag = response["ETag"] { tags.append(tag) }
                if response.status >= 200 { break }
            }
        }
        try await client.close()
        return found
    }

    mutating func runHTTP2(port: Int, requests: Int) async throws -> [String] {
        let client = try await HTTP2Client.connect(to: port)
        var found: [String] = []
        for turn in 0..<requests {
            var (request, body) = request(turn)
            request.scheme = "https"
            let response = try await client.send(request, body: body.map { Array($0.utf8) })
            for head in response.informational + [response.head] {
                let lines = head.headerFields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
                found += check(lines + "\n" + String(decoding: response.body, as: UTF8.self), turn)
            }
            if let tag = response.head.headerFields[.eTag] { tags.append(tag) }
        }
        await client.close()
        return found
    }
}

/// An origin that puts the secret of the user who asks into its answers, and marks what it has put it into.
final class SecretOrigin: Sendable {
    private struct State {
        var random: SeededGenerator
        var requests = 0
    }

    private let state: Mutex<State>
    /// Whether cookies come with explicit freshness, too: for a gateway that never stores them.
    private let sharesCookies: Bool

    init(seed: UInt64, sharesCookies: Bool) {
        state = Mutex(State(random: SeededGenerator(seed: seed ^ 0xABCD)))
        self.sharesCookies = sharesCookies
    }

    var requests: Int { state.withLock { $0.requests } }

    func answer(_ request: OriginRequest) -> OriginAnswer {
        state.withLock { state in
            state.requests += 1
            return Self.answer(request, sharesCookies, &state.random)
        }
    }

    private static func answer(
        _ request: OriginRequest, _ sharesCookies: Bool, _ random: inout SeededGenerator
    ) -> OriginAnswer {
        let places = ["Cookie", "Authorization", "X-Token"].filter { request[$0] != nil }
        let head = String(decoding: request.rawHead, as: UTF8.self)
        let user = secrets(in: head + request.text).first
        let holdsSecret = user != nil && !random.chance(3)
        var answer: OriginAnswer
        if holdsSecret, let user {
            answer = marked(request, user, places, &random)
        } else {
            answer = open(request, user, &random)
        }
        if let user, random.chance(3) {
            // Beside whatever else it says: for this client alone, unless it says that it may be shared.
            answer = answer.interim(103, [.init("X-Hint", secret(of: user))])
        }
        if let user, random.chance(3), sharesCookies || holdsSecret {
            answer = answer.header("Set-Cookie", "id=\(secret(of: user))")
        }
        return answer
    }

    /// A response with the user's secret in it, marked in one of the ways that there are.
    private static func marked(
        _ request: OriginRequest, _ user: Int, _ places: [String], _ random: inout SeededGenerator
    ) -> OriginAnswer {
        let mine = secret(of: user)
        // Strong tags belong to one representation only, so responses for all users have their path in the tag.
        let tag = "\"user-\(user)\""
        let fields = ["max-age=60", "s-maxage=5", "stale-while-revalidate=60", "immutable"]
        if request["If-None-Match"]?.contains(tag) == true, random.chance(2) {
            return .status(304).header("ETag", tag).header("Cache-Control", "no-cache").header("X-User", mine)
                .header("Set-Cookie", "sid=\(mine)")
        }
        var answer = OriginAnswer.ok("body with \(mine) in it").header("X-User", mine)
        switch Int.random(in: 0..<(places.isEmpty ? 3 : 4), using: &random) {
        case 0: answer = answer.header("Cache-Control", "private, " + random.pick(fields))
        case 1: answer = answer.header("Cache-Control", "no-store, " + random.pick(fields))
        case 2: answer = answer.header("Cache-Control", "no-cache").header("ETag", tag).header("Vary", "*")
        default:
            answer = answer.header("Cache-Control", random.pick(["max-age=2", "max-age=60", "no-cache"]))
                .header("Vary", "Accept-Language, " + places.joined(separator: ", ")).header("ETag", tag)
        }
        return random.chance(4) ? answer.chunked(trailers: [.init("X-Trailer", mine)]) : answer
    }

    /// A response for all users, with any caching fields.
    private static func open(
        _ request: OriginRequest, _ user: Int?, _ random: inout SeededGenerator
    ) -> OriginAnswer {
        let tag = "\"\(request.path.dropFirst())\""
        let control = random.pick([
            "max-age=1", "max-age=60", "public", "no-cache", "s-maxage=2", "max-age=1, stale-while-revalidate=30",
            "max-age=1, stale-if-error=30", "must-revalidate, max-age=1", "proxy-revalidate", "max-age=60, immutable",
            "no-store", "private=\"x\", max-age=3",
        ])
        if request["If-None-Match"]?.contains(tag) == true, random.chance(2) {
            let answer = OriginAnswer.status(304).header("ETag", tag)
            guard let user, random.chance(2) else { return answer.header("Cache-Control", control) }
            // No word of freshness, and a cookie: for the client that asked.
            return answer.header("Set-Cookie", "sid=\(secret(of: user))")
        }
        let status = random.pick([200, 200, 200, 200, 404, 301, 503, 410])
        var answer = OriginAnswer.status(status, "for all: \(request.path)").header("Cache-Control", control)
        if status == 301 { answer = answer.header("Location", "/0") }
        if let user, ["no-cache", "proxy-revalidate", "no-store"].contains(control), random.chance(2) {
            answer = answer.header("Set-Cookie", "sid=\(secret(of: user))")
        }
        if random.chance(2) { answer = answer.header("ETag", tag) }
        if random.chance(3) { answer = answer.header("Vary", random.pick(["Accept-Language", "Cookie", "X-Token"])) }
        if random.chance(3) { answer = answer.header("Last-Modified", "Tue, 14 Nov 2023 20:13:20 GMT") }
        return random.chance(3) ? answer.chunked() : answer
    }
}
