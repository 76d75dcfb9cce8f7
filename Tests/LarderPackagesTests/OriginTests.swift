import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import LarderPackages
import TestSupport
import Testing

/// What the origin says of a URL that a package has a member for.
@Suite struct OriginTests {
    private static let url = "http://a.example/a"

    /// A cache of the kind of a gateway, or of a client, over the store; what it fetches.
    private func ask(
        _ setting: Setting, url: String = url, gateway: Bool = true, offline: Bool = false, method: String = "GET",
        _ fields: HTTPFields = [:], _ policy: CachePolicy = [],
        answer: @escaping ScriptedTransport.Handler = ScriptedTransport.unreachable
    ) async throws -> (text: String, asked: Int)? {
        var configuration = HTTPCacheConfiguration()
        configuration.clock = setting.clock
        configuration.caching = gateway ? .gateway : .privateCache
        let transport = ScriptedTransport(answer)
        let cache = HTTPCache(store: setting.store, transport: transport, configuration: configuration)
        var request = try HTTPCache.request(for: url)
        request.method = try #require(HTTPRequest.Method(method))
        request.headerFields.append(contentsOf: fields)
        do {
            let response = try await cache.fetch(request, FetchOptions(policy: policy, isOffline: offline))
            let bytes = (try? await response.body.bytes()) ?? []
            await cache.drain()
            return (String(decoding: bytes, as: UTF8.self), transport.requests.count)
        } catch {
            await cache.drain()
            return nil
        }
    }

    private func install(
        _ setting: Setting, _ text: String = "member", name: String = "site", maxAge: Int64 = 100_000,
        at path: String = "a"
    ) async throws {
        let archive = try setting.package([path: text], "\(name).zip", maxAge: maxAge) { $0.name = name }
        try await setting.packages.install(archive)
    }

    private let reload: HTTPFields = [.cacheControl: "no-cache"]

    /// A member that the origin has something else for is stale in every cache, whatever its rules, also when the
    /// answer is not stored or gone again, and when the clock goes back.
    @Test(arguments: ["no-store", "max-age=5"], [200, 404, 410])
    func aSupersededMemberIsStaleForAll(_ cacheControl: String, _ status: Int) async throws {
        try await Setting.run { setting in
            try await install(setting)
            setting.clock.advance(by: .seconds(100))
            try await #expect(
                ask(setting, reload) { _ throws(TransportError) in
                    .answer(status, [.cacheControl: cacheControl], "v2")
                }?.text == "v2")
            try await setting.store.remove(Key(Self.url))
            setting.clock.jump(by: .seconds(-50))
            for gateway in [true, false] {
                try await #expect(
                    ask(setting, gateway: gateway) { _ throws(TransportError) in
                        .answer(200, [.cacheControl: "no-store"], "v3")
                    }?.text == "v3")
                // Without a connection it is all there is.
                try await #expect(ask(setting, gateway: gateway, offline: true)?.text == "member")
            }
        }
    }

    /// Also if something fresh from the network hid it when the origin's answer came.
    @Test func aMemberBehindAFreshResponse() async throws {
        try await Setting.run { setting in
            try await setting.fetched(Self.url, "v1")
            try await install(setting)
            try await #expect(
                ask(setting, reload) { _ throws(TransportError) in
                    .answer(200, [.cacheControl: "max-age=60"], "v2")
                }?.text == "v2")
            try await setting.store.remove(Key(Self.url))
            try await #expect(ask(setting) { _ throws(TransportError) in .answer(200, [:], "v3") }?.text == "v3")
        }
    }

    /// Also if a stale response of a later date was chosen, and removed.
    @Test(arguments: ["no-store", "404"]) func aMemberBehindAStaleResponse(_ answer: String) async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "member"])
            setting.clock.advance(by: .seconds(10))
            try await setting.fetched(Self.url, "v1", cacheControl: "max-age=5")
            try await setting.packages.install(archive)
            setting.clock.advance(by: .seconds(100))
            for text in ["v2", "v3"] {
                try await #expect(
                    ask(setting) { _ throws(TransportError) in
                        .answer(answer == "404" ? 404 : 200, [.cacheControl: "no-store"], text)
                    }?.text == text)
            }
        }
    }

    /// All packages that have the URL are meant, not only the one whose member was chosen.
    @Test func membersOfSeveralPackages() async throws {
        try await Setting.run { setting in
            try await install(setting, "older", name: "one")
            setting.clock.advance(by: .seconds(10))
            try await install(setting, "newer", name: "two", maxAge: 5)
            setting.clock.advance(by: .seconds(10))
            try await #expect(
                ask(setting) { _ throws(TransportError) in
                    .answer(200, [.cacheControl: "no-store"], "v2")
                }?.text == "v2")
            try await setting.packages.remove("two")
            try await #expect(ask(setting) { _ throws(TransportError) in .answer(200, [:], "v3") }?.text == "v3")
        }
    }

    /// A HEAD that shows another representation, and validations that a caller's policy asks for, leave the member
    /// usable without a connection.
    @Test(arguments: ["HEAD", "policy"]) func whatAsksForValidation(_ kind: String) async throws {
        try await Setting.run { setting in
            try await install(setting)
            setting.clock.advance(by: .seconds(100))
            _ = try await ask(
                setting, method: kind == "HEAD" ? "HEAD" : "GET", kind == "HEAD" ? reload : [:],
                kind == "HEAD" ? [] : .askIfModified
            ) { _ throws(TransportError) in
                .answer(
                    200, [.cacheControl: "no-store", .eTag: "\"other\"", .contentLength: kind == "HEAD" ? "99" : "2"],
                    kind == "HEAD" ? "" : "v2")
            }
            try await #expect(ask(setting, gateway: false, offline: true)?.text == "member")
        }
    }

    /// The beginning of a newer response does not hide a member that is whole.
    @Test func aDownloadThatIsCutOff() async throws {
        try await Setting.run { setting in
            try await install(setting, maxAge: 10)
            setting.clock.advance(by: .seconds(100))
            // Some bytes of the next version.
            _ = try await ask(setting, [.range: "bytes=0-3"]) { _ throws(TransportError) in
                .answer(
                    206,
                    [
                        .contentRange: "bytes 0-3/1000", .eTag: "\"v2\"", .cacheControl: "max-age=1000",
                        .contentLength: "4",
                    ], "half")
            }
            #expect(try !setting.keys().isEmpty)
            try await #expect(ask(setting, offline: true)?.text == "member")
            // The origin cannot be reached.
            try await #expect(ask(setting)?.text == "member")
        }
    }

    /// A variant for other clients is not an answer, and a response that other queries share comes before a stale
    /// member.
    @Test func beside() async throws {
        try await Setting.run { setting in
            try await install(setting)
            _ = try await ask(setting, [.acceptLanguage: "de", .cacheControl: "no-cache"]) { _ throws(TransportError) in
                .answer(200, [.vary: "Accept-Language", .cacheControl: "max-age=1000"], "deutsch")
            }
            try await #expect(ask(setting, offline: true, [.acceptLanguage: "de"])?.text == "deutsch")
            try await #expect(ask(setting, offline: true, [.acceptLanguage: "en"])?.text == "member")
            try await #expect(ask(setting, offline: true)?.text == "member")
        }
        try await Setting.run { setting in
            let url = "http://a.example/q?x=1"
            let zip = RawZip.manifest(
                ["\(url) ; NULL ; Mon, 01 Jan 2024 00:00:00 GMT ;  ; q"], [.init("q", Array("member".utf8))])
            try await setting.packages.install(setting.archive(zip))
            for _ in 0..<2 {
                let answer = try await ask(setting, url: url) { _ throws(TransportError) in
                    .answer(200, [.cacheControl: "max-age=1000", .noVarySearch: "params=(\"x\")"], "shared")
                }
                #expect(answer?.text == "shared")
            }
            try await #expect(ask(setting, url: url)?.asked == 0)
            try await #expect(ask(setting, url: "http://a.example/q?x=2")?.text == "shared")
        }
    }

    /// What the origin has said is carried over by versions with the same content, but for those made later.
    @Test func itsWordOutlivesUpgrades() async throws {
        try await Setting.run { setting in
            let made = setting.clock.now()
            func version(_ number: Int, _ name: String, created: Timestamp) throws -> InstallOptions {
                let archive = try setting.package(["a": "same"], "\(name).zip", version: "\(number)", maxAge: 50) {
                    $0.created = created
                }
                var options = InstallOptions()
                options.source = archive.string
                options.restoresMembers = true
                return options
            }
            for number in 1...2 {
                let options = try version(number, "v\(number)", created: made)
                if number == 2 { try await setting.confirmed(Self.url) }
                try await setting.packages.install(.init(#require(options.source)), options)
                setting.clock.advance(by: .seconds(100))
            }
            // Twice, as the version before it did not bring its own word.
            let third = try version(3, "v3", created: made)
            try await setting.packages.install(.init(#require(third.source)), third)
            try await #expect(setting.response(Self.url)?.freshSeconds == 3_500)
            // A refusal, too.
            _ = try await ask(setting, reload) { _ throws(TransportError) in
                .answer(200, [.cacheControl: "no-store"], "v2")
            }
            setting.clock.advance(by: .seconds(10))
            try await setting.packages.install(.init(#require(third.source)), third)
            try await #expect(ask(setting) { _ throws(TransportError) in .answer(200, [:], "v3") }?.text == "v3")
            // A version that was made after that is believed.
            let fourth = try version(4, "v4", created: setting.clock.now())
            try await setting.packages.install(.init(#require(fourth.source)), fourth)
            try await #expect(ask(setting)?.text == "same")
        }
    }

    /// Of several members for a URL the one that a cache would use is packed.
    @Test func exportsTheLatest() async throws {
        for _ in 0..<4 {
            try await Setting.run { setting in
                try await install(setting, "older", name: "one")
                setting.clock.advance(by: .seconds(10))
                try await install(setting, "newer", name: "two")
                let archive = setting.directory.appending("export.zip")
                try await #expect(setting.packages.export(to: archive).members == 1)
                try await Setting.run { target in
                    try await target.packages.install(archive)
                    try await #expect(target.offline(Self.url) == "newer")
                }
            }
        }
    }
}
