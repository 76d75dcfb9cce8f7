import Foundation
import TestOrigin
import Testing

/// Ranges of one response that several processes fetch into one store, real program and real sockets.
struct RangeProcessTests {
    private static let content = (0..<400_000).map { UInt8(ascii: "a") + UInt8((($0 &* 0x9E37_79B1) >> 16) % 26) }

    private func fetch(_ url: String, _ range: Range<Int>) -> [String] {
        ["fetch", url, "-H", "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"]
    }

    /// Serves ranges; the second half of one that begins at `position` comes when the gate is open.
    private func script(_ origin: TestOrigin, holding position: Int, _ gate: Gate) {
        let video = OriginResource(Self.content, etag: "\"a\"")
        origin.script("/v") { request in
            let answer = video.answer(request).header("Cache-Control", "max-age=600")
            guard let range = Self.range(request), range.lowerBound == position else { return answer }
            let middle = (range.lowerBound + range.upperBound) / 2
            return answer.content(Array(Self.content[range.lowerBound..<middle])).then(gate)
                .then(String(decoding: Self.content[middle..<range.upperBound], as: UTF8.self))
        }
    }

    private static func range(_ request: OriginRequest) -> Range<Int>? {
        guard let value = request["Range"] else { return nil }
        let ends = value.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
        return ends.first.map { $0..<(ends.count == 2 ? ends[1] + 1 : content.count) }
    }

    @Test func aProcessKilledWithinARangeLeavesWhatTheRecordLists() async throws {
        try await withOrigin { origin, place in
            let (url, gate) = (origin.url + "/v", Gate())
            script(origin, holding: 100_000, gate)
            #expect(try await place.run(fetch(url, 0..<100_000)).output == Array(Self.content[..<100_000]))
            let killed = try CommandRun.start(fetch(url, 100_000..<200_000) + ["--store", place.store])
            await gate.arrival()
            kill(killed.processIdentifier, SIGKILL)
            killed.waitUntilExit()
            gate.open()

            let stored = try await place.run(fetch(url, 10..<90_000) + ["--offline"])
            #expect(stored.status == 0 && stored.output == Array(Self.content[10..<90_000]), "\(stored.errors)")
            #expect(try await place.run(fetch(url, 100_000..<200_000) + ["--offline"]).status == 1)
            #expect(try await place.run("fetch", url).output == Self.content)
            #expect(try await place.run("fetch", url, "--offline").output == Self.content)
            let all = try await place.run("ls", "--all").text
            #expect(!all.contains("part="), "\(all)")
        }
    }

    @Test func twoProcessesFillOneResponse() async throws {
        try await withOrigin { origin, place in
            let (url, gate) = (origin.url + "/v", Gate())
            script(origin, holding: 100_000, gate)
            #expect(try await place.run(fetch(url, 0..<100_000)).status == 0)
            async let first = place.run(fetch(url, 100_000..<250_000))
            await gate.arrival()
            #expect(try await place.run(fetch(url, 200_000..<400_000)).output == Array(Self.content[200_000...]))
            gate.open()
            #expect(try await first.output == Array(Self.content[100_000..<250_000]))
            let whole = try await place.run("fetch", url, "--offline")
            #expect(whole.status == 0 && whole.output == Self.content, "\(whole.errors)")
            #expect(origin.requests(for: "/v").count == 3)
            #expect(try await place.run("get", url).output == Self.content)
            let all = try await place.run("ls", "--all").text
            #expect(!all.contains("part="), "\(all)")
        }
    }

    @Test func everyCommandSeesAPartInProgress() async throws {
        try await withOrigin { origin, place in
            let url = origin.url + "/v"
            script(origin, holding: -1, Gate())
            for range in [0..<1_000, 300_000..<350_000] {
                let fetched = try await place.run(fetch(url, range))
                #expect(fetched.status == 0, "\(fetched.errors)")
            }
            let expected = Array(Self.content[..<1_000] + Self.content[300_000..<350_000])
            #expect(try await place.run("get", url, "--partial").output == expected)
            #expect(try await place.run("get", url).errors.contains("51,000 of 400,000 bytes"))
            let out = place.path.appending("out").string
            #expect(try await place.run("export", out, "--partial").status == 0)
            let names = try #require(FileManager.default.enumerator(atPath: out)?.allObjects as? [String])
            let name = try #require(names.first { $0.hasSuffix("/v") })
            #expect(FileManager.default.contents(atPath: out + "/" + name) == Data(expected))
            #expect(!names.contains { $0.contains("part=") })
            #expect(try await !place.run("ls").text.contains("part="))
            #expect(try await place.run("ls", "--all").text.contains("part="))
            #expect(try await place.run("rm", url).status == 0)
            #expect(try await place.run("ls", "--all").text == "")
        }
    }
}

extension Workplace {
    fileprivate func run(_ arguments: [String]) async throws -> CommandRun {
        try await CommandRun.cachectl(arguments + ["--store", store])
    }
}
