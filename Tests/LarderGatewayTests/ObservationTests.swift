import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// What the gateway tells of its work: access log, metrics, status page.
struct ObservationTests {
    let transport = ScriptedTransport { request in
        request.head.path == "/error" ? .text("failed", status: 500) : .text("hello", fresh)
    }

    private func lines(_ format: AccessLogConfiguration.Format, _ requests: [String]) async throws -> [String] {
        try await withDirectory { directory in
            let path = directory.appending("access.log")
            try await withGateway(transport: transport) {
                $0.accessLog = AccessLogConfiguration(format: format, path: path.string)
            } _: { setting in
                for text in requests {
                    let client = try await RawClient.connect(to: setting.port)
                    _ = try await client.exchange(text)
                    try await client.close()
                }
            }
            let text = String(decoding: try TestFiles.read(path), as: UTF8.self)
            #expect(text.hasSuffix("\n"))
            return text.split(separator: "\n").map(String.init)
        }
    }

    @Test func commonLinesAreThoseOfHTTPD() async throws {
        let lines = try await lines(
            .common,
            [
                get("/a?b=c"), get("/a?b=c", version: "1.0"), get("/error", method: "POST"),
                get("/a?b=c", method: "HEAD"),
                "GET http://example.org/%22 HTTP/1.1\r\nHost: a\r\n\r\n", "nonsense\r\n\r\n",
            ])
        // A connection may be logged after the next one has begun.
        #expect(
            lines.sorted()
                == [
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"GET /a?b=c HTTP/1.1\" 200 5",
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"GET /a?b=c HTTP/1.0\" 200 5",
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"POST /error HTTP/1.1\" 500 6",
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"HEAD /a?b=c HTTP/1.1\" 200 -",
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"GET http://example.org/%22 HTTP/1.1\" 200 5",
                    "127.0.0.1 - - [21/Nov/2026:14:08:10 +0000] \"- - HTTP/1.1\" 400 53",
                ].sorted())
    }

    /// U+009B begins what terminals obey, U+0085 and U+2028 begin a line for some readers, U+202E turns the text.
    @Test(arguments: AccessLogConfiguration.Format.allCases)
    func whatMovesACursorIsEscaped(_ format: AccessLogConfiguration.Format) async throws {
        let text = "ü\u{9B}2J\u{85}\u{2028}\u{202E}\u{1F600}"
        let lines = try await lines(format, [get("/a", "User-Agent: \(text)", "Referer: \(text)")])
        #expect(lines.count == 1)
        #expect(!lines[0].unicodeScalars.contains { [0x9B, 0x85, 0x2028, 0x202E].contains($0.value) })
        if format == .json {
            #expect(lines[0].contains("\"userAgent\":\"ü\\u009b2J\\u0085\\u2028\\u202e\u{1F600}\""))
        }
    }

    @Test func linesOfJSONSayWhereTheAnswerCameFrom() async throws {
        let lines = try await lines(
            .json,
            [
                get("/a", "User-Agent: a\"b\\c", "Referer: http://x/ü"), get("/a"),
                get("/", "Via: 1.1 test-gateway"),
            ])
        #expect(lines.count == 3)
        // A connection may be logged after the next one has begun.
        let fixed = Set(lines.map { $0.replacing(/"microseconds":[0-9]+/, with: "\"microseconds\":0") })
        let start =
            "{\"time\":\"2026-11-21T14:08:10Z\",\"client\":\"127.0.0.1\",\"method\":\"GET\",\"host\":\"example.org\""
        #expect(
            fixed.contains(
                start + ",\"target\":\"/a\",\"version\":\"HTTP/1.1\",\"referer\":\"http://x/ü\","
                    + "\"userAgent\":\"a\\\"b\\\\c\",\"source\":\"network\",\"status\":200,\"bytes\":5,\"microseconds\":0}"
            ), "\(lines)")
        #expect(fixed.contains { $0.contains("\"source\":\"hit\",\"status\":200,\"bytes\":5") }, "\(lines)")
        #expect(fixed.contains { $0.contains("\"source\":\"gateway\",\"status\":508") }, "\(lines)")
    }

    @Test func aLogThatCannotBeOpenedIsAnError() async throws {
        await #expect(throws: GatewayError.self) {
            try await withGateway(transport: transport) {
                $0.accessLog = AccessLogConfiguration(path: "/nowhere/access.log")
            } _: { _ in
            }
        }
    }

    private func metrics(_ setting: Setting) async throws -> [String: Double] {
        let response = try await exchange(setting.adminPort, get("/metrics"))
        #expect(response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
        var samples: [String: Double] = [:]
        for line in response.text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            #expect(parts.count == 2 && samples[String(parts[0])] == nil, "\(line)")
            samples[String(parts[0])] = Double(String(parts[1]))
        }
        // Every family is described once, before its samples.
        let described = response.text.split(separator: "\n").filter { $0.hasPrefix("# TYPE") }.map {
            $0.split(separator: " ")[2]
        }
        #expect(Set(described).count == described.count)
        return samples
    }

    @Test func metricsCountWhatHappened() async throws {
        try await withGateway(transport: transport) {
            $0.adminPort = 0
        } _: { setting in
            let client = try await setting.connect()
            for _ in 0..<4 { _ = try await client.exchange(get("/a")) }
            _ = try await client.exchange(get("/error", method: "POST"))
            _ = try await client.exchange(get("/b", "Via: 1.1 test-gateway", method: "BREW"))
            let samples = try await metrics(setting)
            #expect(samples["larder_gateway_requests_total{method=\"GET\",status=\"2xx\"}"] == 4)
            #expect(samples["larder_gateway_requests_total{method=\"POST\",status=\"5xx\"}"] == 1)
            #expect(samples["larder_gateway_requests_total{method=\"other\",status=\"5xx\"}"] == 1)
            #expect(samples["larder_gateway_answers_total{source=\"hit\"}"] == 3)
            #expect(samples["larder_gateway_answers_total{source=\"network\"}"] == 2)
            #expect(samples["larder_gateway_answers_total{source=\"gateway\"}"] == 1)
            #expect(samples["larder_gateway_request_duration_seconds_count"] == 6)
            #expect(samples["larder_gateway_request_duration_seconds_bucket{le=\"+Inf\"}"] == 6)
            #expect(samples["larder_gateway_connections"] == 1)
            #expect(samples["larder_store_entries"] == 1)
            #expect(samples["larder_gateway_bytes_total{direction=\"out\"}"] ?? 0 > 600)
            try await client.close()
        }
    }

    @Test(.timeLimit(.minutes(1))) func metricsShowWhatTheMemoryTierHolds() async throws {
        let transport = ScriptedTransport { _ in .bytes(body(700_000, 1), [.cacheControl: "max-age=60"]) }
        try await withGateway(transport: transport) {
            $0.adminPort = 0
        } _: { setting in
            let before = try await metrics(setting)
            #expect(before["larder_store_held_values"] == 0 && before["larder_store_held_bytes"] == 0)
            let client = try await setting.connect()
            _ = try await client.exchange(get("/a"))
            try await setting.store.perform { try $0.flush() }
            // A thread of its own reads the body, after the second hit.
            for _ in 0..<2 { _ = try await client.exchange(get("/a")) }
            while try await metrics(setting)["larder_store_held_values"] == 0 {
                _ = try await client.exchange(get("/a"))
            }
            _ = try await client.exchange(get("/a"))
            let samples = try await metrics(setting)
            #expect(samples["larder_store_held_values"] == 1)
            #expect(samples["larder_store_held_bytes"] ?? 0 >= 700_000)
            #expect(samples["larder_store_held_lookups_total{result=\"hit\"}"] ?? 0 > 0)
            #expect(samples["larder_store_held_lookups_total{result=\"miss\"}"] ?? 0 > 0)
            try await client.close()
        }
    }

    @Test func aRequestThatEndsBeforeItsAnswerHasNoStatus() async throws {
        let arrived = Gate()
        let transport = ScriptedTransport { _ throws(TransportError) in
            arrived.open()
            try? await Gate().wait()
            throw TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
        }
        try await withGateway(transport: transport) {
            $0.adminPort = 0
        } _: { setting in
            let client = try await setting.connect()
            try await client.send(get("/"))
            try await arrived.wait()
            try await client.reset()
            try await setting.waitForConnections(0)
            let samples = try await metrics(setting)
            #expect(samples["larder_gateway_requests_total{method=\"GET\",status=\"none\"}"] == 1)
            #expect(samples["larder_gateway_requests_total{method=\"GET\",status=\"1xx\"}"] == nil)
            try await #expect(exchange(setting.port, get("/", "Via: 1.1 test-gateway")).status == 508)
        }
    }

    @Test func theAdminServerHasAPageAndTellsOfItsHealth() async throws {
        try await withGateway(transport: transport) {
            $0.adminPort = 0
        } _: { setting in
            _ = try await exchange(setting.port, get("/a"))
            let health = try await exchange(setting.adminPort, get("/healthz"))
            #expect(health.status == 200)
            #expect(health.text == "ok\n")
            let page = try await exchange(setting.adminPort, get("/"))
            #expect(page["Content-Type"] == "text/html; charset=utf-8")
            #expect(page.text.contains("<tr><th>Requests</th><td>1</td></tr>"))
            #expect(page.text.contains("<svg") && page.text.hasSuffix("</html>\n"))
            try await #expect(exchange(setting.adminPort, get("/metrics", method: "HEAD")).body.isEmpty)
            try await #expect(exchange(setting.adminPort, get("/nothing")).status == 404)
            try await #expect(exchange(setting.adminPort, get("/", method: "POST")).status == 405)
            try await #expect(exchange(setting.adminPort, "nonsense\r\n\r\n").status == 400)
            // Clients that stay take no more than their part of the descriptors.
            var clients: [RawClient] = []
            for _ in 0..<128 { clients.append(try await RawClient.connect(to: setting.adminPort)) }
            let late = try await RawClient.connect(to: setting.adminPort)
            await #expect(throws: (any Error).self) {
                try await late.send(get("/healthz"))
                _ = try await late.response()
            }
            for client in clients + [late] { try? await client.close() }
        }
    }
}
