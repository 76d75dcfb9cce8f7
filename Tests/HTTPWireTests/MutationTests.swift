import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import HTTPWire

/// Mutations of good messages: nothing traps, however the bytes are cut. `tools/fuzz` does it guided by coverage.
@Suite struct MutationTests {
    private static let seed =
        ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
    private static let rounds = 20_000

    private static let words = [
        "\r\n", "\r", "\n", "\0", " ", "\t", ":", ",", ";", "0", "5", "f", "chunked", ";a=\"", "\"", "\\", "=",
        "Content-Length: 5\r\n",
        "Host: a\r\n",
        "Transfer-Encoding: chunked\r\n", "HTTP/1.1", "Connection: close\r\n", "\u{ff}", "\r\n\r\n", "[::1]", "%",
        "http://",
    ].map(bytes)

    private static func mutate(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let at = Int.random(in: 0...bytes.count, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where at < bytes.count: bytes[at] = UInt8.random(in: 0...255, using: &generator)
            case 1 where at < bytes.count: bytes.remove(at: at)
            case 2: bytes.removeLast(bytes.count - at)
            case 3: bytes.insert(contentsOf: bytes.suffix(from: at), at: 0)
            default: bytes.insert(contentsOf: words.randomElement(using: &generator) ?? [], at: at)
            }
        }
        return bytes
    }

    /// Calls `check` with mutations of `seeds`, and places to cut them.
    private func run(
        _ name: String, _ seeds: [String], _ check: ([UInt8], _ cuts: [Int]) throws -> Void
    ) async throws {
        print("\(name): LARDER_SEED=\(Self.seed)")
        var generator = SeededGenerator(seed: Self.seed)
        let seeds = seeds.map(bytes)
        for round in 0..<Self.rounds {
            // Other tests wait for things on the same threads; this one waits for nothing.
            if round % 100 == 0 { await Task.yield() }
            let input = Self.mutate(seeds[round % seeds.count], &generator)
            let cuts = (0..<3).map { _ in Int.random(in: 0...input.count, using: &generator) }.sorted()
            do {
                try check(input, cuts)
            } catch {
                Issue.record("seed \(Self.seed), round \(round), cuts \(cuts), input \(input): \(error)")
                return
            }
        }
    }

    /// What a scanner finds when it sees ever longer parts of the bytes.
    private func scan(_ input: [UInt8], isRequest: Bool, ends: [Int]) -> Result<Range<Int>?, WireError> {
        var scanner = HeadScanner(
            limits: HeadLimits(headBytes: 300, startLineBytes: 80, fields: 8), isRequest: isRequest)
        for end in ends {
            let part = input.withBytes { raw in
                Result { () throws(WireError) in try scanner.scan(UnsafeRawBufferPointer(rebasing: raw[..<end])) }
            }
            if case .success(nil) = part { continue }
            return part
        }
        return .success(nil)
    }

    private static let requests = [
        "GET / HTTP/1.1\r\nHost: example.com:80\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n",
        "POST http://[::1]:1/a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nPUT /x HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    ]

    @Test func requestHeads() async throws {
        try await run("requestHeads", Self.requests) { input, cuts in
            let whole = scan(input, isRequest: true, ends: [input.count])
            try #require(scan(input, isRequest: true, ends: cuts + [input.count]) == whole)
            guard case .success(let range?) = whole else { return }
            let head = Array(input[range])
            guard let parsed = try? head.withBytes({ try RequestHead.parse($0) }) else { return }
            // What is taken is written as something that reads alike.
            var written: [UInt8] = []
            guard parsed.request.authority != nil else { return }
            try MessageWriter.append(parsed.request, to: &written)
            let again = try HTTPWireTests.request(written)
            try #require(again.request.method == parsed.request.method)
            try #require(again.request.authority == parsed.request.authority)
            try #require(again.request.path == parsed.request.path)
            try #require(again.request.headerFields == parsed.request.headerFields)
            if parsed.version == .http11 { try #require(again.framing == parsed.framing) }
        }
    }

    private static let responses = [
        "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\n", "HTTP/1.0 404 \r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 206 Partial\r\nTransfer-Encoding: identity, chunked\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 999\r\nContent-Length : 5, 5\r\nSet-Cookie: a=\u{e9}\r\n\r\n",
    ]

    @Test func responseHeads() async throws {
        try await run("responseHeads", Self.responses) { input, cuts in
            let whole = scan(input, isRequest: false, ends: [input.count])
            try #require(scan(input, isRequest: false, ends: cuts + [input.count]) == whole)
            guard case .success(let range?) = whole else { return }
            let head = Array(input[range])
            guard let parsed = try? head.withBytes({ try ResponseHead.parse($0, answering: .get) }) else { return }
            var written: [UInt8] = []
            try MessageWriter.append(parsed.response, to: &written)
            let again = try HTTPWireTests.response(written)
            try #require(again.response == parsed.response)
            if parsed.version == .http11 { try #require(again.framing == parsed.framing) }
        }
    }

    private static let bodies = [
        "5\r\nhello\r\n0\r\n\r\n", "1 ; a = \"\\\";\" ;b\r\nx\r\n0;c=d\r\n\r\n",
        "1;a=b\r\nx\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\nC: d\r\n\r\nHTTP/1.1 200 OK",
    ]

    @Test func chunkedBodies() async throws {
        try await run("chunkedBodies", Self.bodies) { input, cuts in
            let whole = decode(.chunked, [input])
            let ends = [0] + cuts + [input.count]
            let pieces = zip(ends, ends.dropFirst()).map { Array(input[$0..<$1]) }
            try #require(decode(.chunked, pieces) == whole)
        }
    }

    /// Every head cut at every byte, and byte by byte.
    @Test func everyCutGivesTheSame() throws {
        for (texts, isRequest) in [(Self.requests, true), (Self.responses, false)] {
            for input in texts.map(bytes) {
                let whole = scan(input, isRequest: isRequest, ends: [input.count])
                #expect(whole != .success(nil))
                #expect(scan(input, isRequest: isRequest, ends: Array(0...input.count)) == whole)
                for cut in 0...input.count {
                    #expect(scan(input, isRequest: isRequest, ends: [cut, input.count]) == whole)
                }
                // No part of a head is a head.
                guard case .success(let range?) = whole else { continue }
                for cut in 0..<range.count {
                    let part = Array(input[range].prefix(cut))
                    let taken = part.withBytes { raw in
                        isRequest
                            ? (try? RequestHead.parse(raw)) != nil
                            : (try? ResponseHead.parse(raw, answering: .get)) != nil
                    }
                    #expect(!taken)
                }
            }
        }
    }
}
