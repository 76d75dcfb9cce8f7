import Foundation
import LarderURLSession
import TestOrigin
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Ranges, methods and contents.
struct MessageTests {
    @Test func aRangeOfAStoredResponseNeedsNoRequest() async throws {
        try await withBench { bench in
            let page = OriginResource("0123456789", etag: "\"1\"", fields: [.init("Cache-Control", "max-age=60")])
            bench.origin.script("/a") { page.answer($0) }
            _ = try await bench.load("/a")
            let part = try await bench.load(
                bench.request("/a") { $0.setValue("bytes=2-4", forHTTPHeaderField: "Range") })
            #expect(part.status == 206 && part.text == "234" && part.fields["Content-Range"] == "bytes 2-4/10")
            #expect(bench.count("/a") == 1)
        }
    }

    @Test func aRangeIsLoadedUncoded() async throws {
        try await withBench { bench in
            let page = OriginResource("0123456789", etag: "\"1\"", fields: [.init("Cache-Control", "max-age=60")])
            bench.origin.script("/a") { page.answer($0) }
            let request = bench.request("/a") { $0.setValue("bytes=2-4", forHTTPHeaderField: "Range") }
            let first = try await bench.load(request)
            let second = try await bench.load(request)
            #expect(first.status == 206 && first.text == "234" && first == second)
            #expect(bench.count("/a") == 1 && bench.origin.requests[0]["Accept-Encoding"] == "identity")
        }
    }

    @Test func aChangeInvalidatesWhatIsStored() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { request in
                request.method == "POST"
                    ? .ok("changed by " + request.text)
                    : .counter(request).header("Cache-Control", "max-age=60")
            }
            let answer1 = try await bench.load("/a")
            #expect(answer1.text == "1")
            let change = bench.request("/a") {
                $0.httpMethod = "POST"
                $0.httpBody = Data("me".utf8)
            }
            let answer2 = try await bench.load(change)
            #expect(answer2.text == "changed by me")
            let answer3 = try await bench.load("/a")
            #expect(answer3.text == "3")
        }
    }

    @Test func aContentFromAStreamArrives() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .ok($0.text) }
            let content = String(repeating: "0123456789", count: 20_000)
            let request = bench.request("/a") {
                $0.httpMethod = "PUT"
                $0.httpBodyStream = InputStream(data: Data(content.utf8))
            }
            let answer4 = try await bench.load(request)
            #expect(answer4.text == content)
        }
    }

    @Test(arguments: ["PUT", "DELETE", "OPTIONS", "REPORT"]) func methodsArriveAsTheyAre(method: String) async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .ok($0.method) }
            let request = bench.request("/a") {
                $0.httpMethod = method
                if method == "PUT" { $0.httpBody = Data("x".utf8) }
            }
            let answer5 = try await bench.load(request)
            #expect(answer5.text == method)
        }
    }

    @Test func additionalHeadersSelectVariants() async throws {
        try await withBench(session: { $0.httpAdditionalHeaders = ["X-App": "7", "Accept-Language": "de"] }) { bench in
            bench.origin.script("/a") { request in
                .ok("\(request["X-App"] ?? "") \(request["Accept-Language"] ?? "")")
                    .header("Vary", "Accept-Language").header("Cache-Control", "max-age=60")
            }
            let answer6 = try await bench.load("/a")
            #expect(answer6.text == "7 de")
            let other = bench.request("/a") { $0.setValue("fr", forHTTPHeaderField: "accept-language") }
            let answer7 = try await bench.load(other)
            #expect(answer7.text == "7 fr")
            let answer8 = try await bench.load("/a")
            #expect(answer8.text == "7 de")
            #expect(bench.count("/a") == 2)
        }
    }

    @Test func userInformationBecomesAField() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .ok($0["Authorization"] ?? "none") }
            let url = URL(string: "http://me:secret@\(bench.origin.authority)/a#part")!
            let answer = try await bench.load(URLRequest(url: url))
            #expect(answer.text == "Basic " + Data("me:secret".utf8).base64EncodedString())
        }
    }

    @Test func requestsThatCannotBeSentFail() async throws {
        try await withBench { bench in
            let badName = bench.request("/a") { $0.setValue("1", forHTTPHeaderField: "Not A Name") }
            #expect(await errorCode { try await bench.load(badName) } == .badURL)
            let badMethod = bench.request("/a") { $0.httpMethod = "A B" }
            #expect(await errorCode { try await bench.load(badMethod) } == .badURL)
            #expect(bench.origin.requests.isEmpty)
            // Linux' URLRequest leaves such a field out.
            let badValue = bench.request("/a") { $0.setValue("1\r\nX-Other: 2", forHTTPHeaderField: "X-A") }
            if badValue.value(forHTTPHeaderField: "X-A") == nil {
                bench.origin.script("/a", .ok("x"))
                _ = try await bench.load(badValue)
                #expect(bench.origin.requests.map { $0["X-Other"] } == [nil])
            } else {
                #expect(await errorCode { try await bench.load(badValue) } == .badURL)
            }
        }
    }
}
