import Foundation
import LarderURLSession
import TestOrigin
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A hit is what the network sent: status, fields and body.
struct HitTests {
    /// `hello gzip ` twenty times.
    private static let gzip = [UInt8](
        Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV0ivyixQyBhuTADZlPus3AAAAA==")!)

    struct Case: Sendable, CustomStringConvertible {
        var name: String
        var answer: OriginAnswer
        var text: String
        var description: String { name }
    }

    static let cases = [
        Case(name: "plain", answer: .ok("hello"), text: "hello"),
        Case(name: "empty", answer: .ok(""), text: ""),
        Case(name: "chunked", answer: .ok("hel").then("lo").chunked(), text: "hello"),
        Case(name: "until close", answer: .ok("hello").untilClose(), text: "hello"),
        Case(
            name: "gzip", answer: .ok(gzip).header("Content-Encoding", "gzip").header("ETag", "\"g\""),
            text: String(repeating: "hello gzip ", count: 20)),
        Case(
            name: "gzip, chunked", answer: .ok(gzip).header("Content-Encoding", "gzip").chunked(),
            text: String(repeating: "hello gzip ", count: 20)),
        Case(name: "not found", answer: .status(404, "nothing"), text: "nothing"),
        Case(name: "gone", answer: .status(410, ""), text: ""),
        Case(name: "no content", answer: .status(204), text: ""),
        Case(
            name: "many fields",
            answer: .ok("x").header("X-Two", "1").header("X-Two", "2").header("content-language", "de")
                .header("Content-Type", "text/plain; charset=utf-8").header("Last-Modified", "yesterday")
                .header("Set-Cookie", "a=1").header("Set-Cookie", "b=2; Expires=Wed, 09 Jun 2027 10:18:14 GMT")
                .header("Link", "<a>; rel=b, <c>; rel=d").header("Vary", "Accept-Language"),
            text: "x"),
        Case(name: "age", answer: .ok("old").header("Age", "7"), text: "old"),
        Case(
            name: "another cache", answer: .ok("x").header("Cache-Status", "upstream; hit").header("Via", "1.1 up"),
            text: "x"),
    ]

    @Test(arguments: cases) func aHitEqualsTheNetwork(test: Case) async throws {
        try await withBench { bench in
            let answer = test.answer.header("Cache-Control", "max-age=60").header("Expires", "0")
            bench.origin.script("/a", answer)
            let request = bench.request("/a")
            let plain = try await bench.loadPlain(request)
            let miss = try await bench.load(request)
            let hit = try await bench.load(request)
            #expect(bench.count("/a") == 2, "the third load is a hit")
            #expect(miss.text == test.text)
            #expect(miss == plain.endToEnd)
            #expect(hit == miss)
        }
    }

    /// Only responses to GET are stored (docs/http-cache.md), and they answer HEAD.
    @Test func aHitOfHEADEqualsTheNetwork() async throws {
        try await withBench { bench in
            let answer = OriginAnswer.ok("hello").header("ETag", "\"1\"").header("Cache-Control", "max-age=60")
            bench.origin.script("/a", answer)
            let head = bench.request("/a") { $0.httpMethod = "HEAD" }
            let plain = try await bench.loadPlain(head)
            let miss = try await bench.load(head)
            #expect(miss == plain.endToEnd && miss.data.isEmpty && miss.fields["Content-Length"] == "5")
            _ = try await bench.load("/a")
            let hit = try await bench.load(head)
            #expect(bench.count("/a") == 3, "the last load is a hit")
            #expect(hit == miss)
        }
    }

    @Test func everyKindOfTaskGetsTheSame() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=60"))
            let handler = try await bench.load("/a")
            let (data, response) = try await bench.session().data(for: bench.request("/a"))
            #expect(Answer(data, response) == handler)
            let (data2, response2) = try await bench.session().data(from: bench.url("/a"))
            #expect(Answer(data2, response2) == handler)
            #expect(try await Recorder.load(bench.configuration, bench.request("/a")).answer == handler)
            #expect(bench.count("/a") == 1)
        }
    }

    @Test func aStaleResponseIsValidated() async throws {
        try await withBench { bench in
            let page = OriginResource("hello", etag: "\"1\"", fields: [.init("Cache-Control", "no-cache")])
            bench.origin.script("/a") { page.answer($0) }
            let first = try await bench.load("/a")
            let second = try await bench.load("/a")
            #expect(first == second && second.status == 200 && second.text == "hello")
            #expect(bench.origin.requests.map { $0["If-None-Match"] } == [nil, "\"1\""])
        }
    }

    @Test func aDecodedResponseIsValidatedAndStaysAsItWas() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { request in
                request["If-None-Match"] == nil
                    ? .ok(Self.gzip).header("Content-Encoding", "gzip").header("ETag", "\"g\"")
                        .header("Cache-Control", "no-cache")
                    : OriginAnswer.notModified.header("ETag", "\"g\"").header("Cache-Control", "no-cache")
            }
            let first = try await bench.load("/a")
            let second = try await bench.load("/a")
            #expect(first == second && second.fields["Content-Encoding"] == "gzip")
            #expect(second.fields["Content-Length"] == String(Self.gzip.count))
            #expect(bench.origin.requests.map { $0["If-None-Match"] } == [nil, "\"g\""])
        }
    }

    @Test func variantsAreKeptApart() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { request in
                .ok(request["Accept-Language"] ?? "").header("Cache-Control", "max-age=60")
                    .header("Vary", "Accept-Language")
            }
            for _ in 0..<2 {
                for language in ["de", "fr"] {
                    let request = bench.request("/a") {
                        $0.setValue(language, forHTTPHeaderField: "Accept-Language")
                    }
                    let answer1 = try await bench.load(request)
                    #expect(answer1.text == language)
                }
            }
            #expect(bench.count("/a") == 2)
        }
    }

    @Test func whatTheCacheHasToSayIsShownOnRequest() async throws {
        try await withBench(URLSessionCachingOptions(showsCacheFields: true)) { bench in
            bench.origin.script("/a", .ok("x").header("Cache-Control", "max-age=60"))
            let miss = try await bench.load("/a")
            let hit = try await bench.load("/a")
            #expect(miss.fields["Cache-Status"]?.contains("fwd=uri-miss") == true)
            #expect(hit.fields["Cache-Status"]?.contains("larder; hit") == true)
            #expect(hit.fields["Age"].flatMap { Int($0) } != nil && miss.fields["Age"] == nil)
        }
    }

    @Test func twoCachesInOneProcessDoNotMix() async throws {
        try await withBench { first in
            try await withBench { second in
                first.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
                let url = first.url("/a")
                let answer2 = try await first.load("/a")
                #expect(answer2.text == "1")
                let answer3 = try await second.session().answer(URLRequest(url: url))
                #expect(answer3.text == "2")
                let answer4 = try await first.load("/a")
                #expect(answer4.text == "1")
                let answer5 = try await second.session().answer(URLRequest(url: url))
                #expect(answer5.text == "2")
                let answer6 = try await first.loadPlain(URLRequest(url: url))
                #expect(answer6.text == "3")
            }
        }
    }

    @Test func aRemovedCacheIsNotUsed() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
            let session = bench.session()
            let answer7 = try await session.answer(bench.request("/a"))
            #expect(answer7.text == "1")
            bench.configuration.removeCache()
            let answer8 = try await session.answer(bench.request("/a"))
            #expect(answer8.text == "2")
            let answer9 = try await bench.load("/a")
            #expect(answer9.text == "3")
        }
    }

    @Test func nothingIsStoredTwice() async throws {
        try await withBench(session: { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        ) {
            bench in
            #expect(bench.configuration.urlCache == nil)
            bench.origin.script("/a", .ok("x").header("Cache-Control", "max-age=60"))
            _ = try await bench.load("/a")
            try await bench.store.perform { try $0.flush() }
            let statistics = try await bench.store.perform { try $0.statistics() }
            #expect(statistics.entryCount == 1)
        }
    }
}
