import Foundation
import HTTPTestSupport
import TestOrigin
import TestSupport
import Testing

/// `serve`: what it says, what its signals do, and its settings; the real program, real sockets.
struct ServeTests {
    @Test func answersUntilItIsStopped() async throws {
        try await withOrigin { origin, place in
            let gateway = try await RunningGateway(place, "--origin", origin.url)
            let url = gateway.address + "/a"
            // Another store, so that the answers are the gateway's.
            let client = try Workplace()
            for expected in ["fwd=uri-miss", "; hit"] {
                let run = try await client.run("fetch", url, "-i", "--policy", "do-not-read")
                #expect(run.status == 0 && run.text.contains(expected) && run.text.hasSuffix("hello"), "\(run.text)")
            }
            let purge = try await client.run("fetch", url, "-X", "PURGE")
            #expect(purge.text.contains("\"removed\": 1"))
            #expect(origin.requests(for: "/a").count == 1)
            gateway.signal(SIGINT)
            #expect(try await gateway.end() == 0)
            #expect(gateway.errors.contains("draining: waiting up to 10.0 s"))
        }
    }

    /// What is known not to be stored goes the shortest way here, too, where one transport is within another.
    @Test func responsesThatAreNotStoredAreRelayed() async throws {
        try await withOrigin { origin, place in
            let gateway = try await RunningGateway(
                place, "--origin", origin.url, "--threads", "1", "--admin", "127.0.0.1:0")
            let client = try await RawClient.connect(to: try #require(URL(string: gateway.address)?.port))
            for _ in 0..<3 { try await #expect(client.exchange(get("/private")).text == "secret") }
            try await client.close()
            let admin = try #require(URL(string: gateway.ready["admin"] as? String ?? "")?.port)
            let reader = try await RawClient.connect(to: admin)
            let figures = try await reader.exchange(get("/metrics", "Connection: close")).text
            #expect(figures.contains("larder_gateway_relayed_requests_total 2\n"))
            try await reader.close()
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    /// What root may do hides options that others may not set on a socket: a gateway then closed each connection.
    @Test(.enabled(if: AnotherUser.canRunPrograms)) func servesAsAnotherUserThanRoot() async throws {
        try await withOrigin(verifyingWith: "--any-owner") { origin, place in
            let prefix = try AnotherUser.prefix(for: place)
            let gateway = try await RunningGateway(place, "--origin", origin.url, prefix: prefix)
            let client = try Workplace()
            let run = try await client.run("fetch", gateway.address + "/a")
            #expect(run.status == 0 && run.text == "hello", "\(run.text) \(run.errors)")
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    /// Starts a program with a limit of open files.
    private func limited(to count: Int) -> [String] {
        ["/bin/sh", "-c", "ulimit -n \(count); exec \"$0\" \"$@\"", CommandRun.path]
    }

    @Test func aServerLeavesDescriptorsFree() async throws {
        try await withOrigin { origin, place in
            let gate = Gate()
            origin.script("/held", .ok("done").header("Cache-Control", "no-store").holding(at: gate))
            let gateway = try await RunningGateway(place, "--origin", origin.url, prefix: limited(to: 160))
            let port = try #require(URL(string: gateway.address)?.port)
            let refused = Counter()
            let statuses = try await withThrowingTaskGroup(of: Int?.self) { group in
                for number in 0..<150 {
                    group.addTask {
                        let status = try? await Self.status(of: "/held?\(number)", port)
                        refused.add(1)
                        return status
                    }
                }
                try await waitWhile { gate.arrivals + refused.value < 150 }
                #if os(Linux)
                    let open = try FileManager.default.contentsOfDirectory(
                        atPath: "/proc/\(gateway.process.processIdentifier)/fd")
                    // Beyond its limit there is what it inherited from the tests that run beside this one.
                    #expect(open.compactMap { Int($0) }.filter { $0 < 160 }.max() ?? 0 < 128)
                #endif
                gate.open()
                return try await group.reduce(into: [Int?]()) { $0.append($1) }
            }
            #expect(statuses.contains(200) && statuses.contains { $0 != 200 }, "\(statuses)")
            try await #expect(Self.status(of: "/a", port) == 200)
            #expect(gateway.process.isRunning)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    private static func status(of path: String, _ port: Int) async throws -> Int {
        let client = try await RawClient.connect(to: port)
        try await client.send("GET \(path) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        let status = try await client.response().status
        try await client.close()
        return status
    }

    @Test func tooFewDescriptorsAreAnError() async throws {
        let place = try Workplace()
        let errors = try place.file("err", [])
        for (count, command) in [(100, ["serve", "--origin", "http://h", "--listen", "127.0.0.1:0"]), (20, ["gc"])] {
            let process = try CommandRun.start(
                command + ["--store", place.store], prefix: limited(to: count),
                errors: try FileHandle(forWritingTo: URL(fileURLWithPath: errors)))
            await process.exit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 74)
        }
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: errors)), as: UTF8.self)
        #expect(text.contains("20 files may be open"), "\(text)")
    }

    @Test(arguments: ["junk", "cut"]) func aDamagedIndexIsRebuiltAtTheStart(_ damage: String) async throws {
        try await withOrigin { origin, place in
            #expect(try place.run("put", "a", input: [1]).status == 0)
            let index = place.store + "/index/data.mdb"
            let handle = try #require(FileHandle(forUpdatingAtPath: index))
            if damage == "cut" {
                try handle.truncate(atOffset: 5_000)
            } else {
                try handle.write(contentsOf: [UInt8](repeating: 0x5A, count: 12_288))
            }
            try handle.close()
            let client = try Workplace()
            let gateway = try await RunningGateway(place, "--origin", origin.url)
            for expected in ["fwd=uri-miss", "; hit"] {
                let run = try await client.run("fetch", gateway.address + "/a", "-i", "--policy", "do-not-read")
                #expect(run.status == 0 && run.text.contains(expected), "\(run.text)")
            }
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            #expect(gateway.errors.contains("the index was damaged and has been rebuilt"))
        }
    }

    /// A bit that flipped on the disk is a miss, and the origin is asked again.
    @Test func readsCanBeVerified() async throws {
        try await withOrigin { origin, place in
            origin.script(
                "/long", .ok(String(repeating: "0123456789", count: 30_000)).header("Cache-Control", "max-age=60"))
            let gateway = try await RunningGateway(place, "--origin", origin.url, "--verify-reads")
            let client = try Workplace()
            func source() async throws -> String {
                let run = try await client.run("fetch", gateway.address + "/long", "-i", "--policy", "do-not-read")
                #expect(run.status == 0 && run.text.hasSuffix("0123456789"), "\(run.errors)")
                return run.text
            }
            try await #expect(source().contains("fwd=uri-miss"))
            try await #expect(source().contains("; hit"))
            let name = try #require(place.contents(of: "store/blobs").keys.first)
            let handle = try #require(FileHandle(forUpdatingAtPath: place.store + "/blobs/" + name))
            try handle.seek(toOffset: 150_000)
            try handle.write(contentsOf: [UInt8(ascii: "x")])
            try handle.close()
            try await #expect(!source().contains("; hit"))
            try await #expect(source().contains("; hit"))
            #expect(origin.requests(for: "/long").count == 2)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    @Test func aStoreWithoutABudgetGetsOneAndTheStartLineSaysSo() async throws {
        try await withOrigin { origin, place in
            let gateway = try await RunningGateway(place, "--origin", "a.example=\(origin.url)", "--forward")
            let budget = try #require(gateway.ready["budgetBytes"] as? Int)
            #expect(budget >= 1 << 20)
            #expect(gateway.ready["store"] as? String == place.store)
            #expect(
                gateway.ready["origins"] as? [String] == [
                    "a.example at \(origin.url)", "other hosts at the server in the URL",
                ])
            #expect(try await place.run("budget", "--json").json["bytes"] as? Int == budget)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            let unlimited = try await RunningGateway(place, "--origin", origin.url, "--budget", "unlimited")
            #expect(unlimited.ready["budgetBytes"] is NSNull)
            unlimited.signal(SIGTERM)
            #expect(try await unlimited.end() == 0)
        }
    }

    @Test func whichOriginFailsAndWhyIsToldOnce() async throws {
        let place = try Workplace()
        let gateway = try await RunningGateway(place, "--origin", "http://127.0.0.1:1")
        for path in ["/a", "/b", "/c"] {
            let run = try await Workplace().run("fetch", gateway.address + path)
            #expect(run.text == "The origin cannot be reached: it refuses connections.\n")
        }
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
        let lines = gateway.errors.split(separator: "\n").filter { $0.contains("an origin failed") }
        #expect(lines.count == 1 && lines[0].contains("cannot connect to 127.0.0.1:1: Connection refused"))
        #expect(lines.first?.contains("warning") == true)
    }

    /// Its answers are cut, so clients see less than with an origin that cannot be reached.
    @Test func anOriginThatFailsWithinAnAnswerIsNamed() async throws {
        try await withOrigin { origin, place in
            let gate = Gate()
            let long = String(repeating: "x", count: 400_000)
            origin.script("/length", .ok(long).truncated(after: 300_000))
            origin.script("/chunked", .ok(long).chunked().truncated(after: 300_000))
            origin.script("/stalled", .ok(long).declaringLength(500_000).then(gate))
            let gateway = try await RunningGateway(place, "--origin", origin.url, "--read-timeout", "2s")
            let client = try Workplace()
            for path in ["/length", "/chunked", "/stalled"] {
                _ = try await client.run("fetch", gateway.address + path)
            }
            gate.open()
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            let lines = gateway.errors.split(separator: "\n").filter { $0.contains("an origin failed: ") }
            let host = origin.url.dropFirst("http://".count)
            #expect(lines.count >= 2 && lines.allSatisfy { $0.contains(host) }, "\(gateway.errors)")
            #expect(lines.contains { $0.hasSuffix("\(host) sent no more content in time") }, "\(gateway.errors)")
        }
    }

    /// Nearly all of its body is there, so it continues when its client is cut off; but not for longer than the drain.
    @Test func aLoadThatHangsDoesNotKeepTheGateway() async throws {
        try await withOrigin { origin, place in
            let gate = Gate()
            let (most, rest) = (String(repeating: "m", count: 1_000), String(repeating: "r", count: 100))
            origin.script("/most", .ok(most).then(gate).then(rest).header("Cache-Control", "max-age=60"))
            let gateway = try await RunningGateway(
                place, "--origin", origin.url, "--drain", "100ms", "--read-timeout", "10m")
            let client = try CommandRun.start(["fetch", gateway.address + "/most", "--store", try Workplace().store])
            await gate.arrival()
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            gate.open()
            await client.exit()
        }
    }

    @Test func usr1OpensTheAccessLogAgain() async throws {
        try await withOrigin { origin, place in
            let log = place.path.appending("access.log").string
            let gateway = try await RunningGateway(place, "--origin", origin.url, "--access-log", log)
            let client = try Workplace()
            #expect(try await client.run("fetch", gateway.address + "/a").status == 0)
            try FileManager.default.moveItem(atPath: log, toPath: log + ".1")
            gateway.signal(SIGUSR1)
            try await gateway.waitUntilItSays("access log reopened")
            #expect(try await client.run("fetch", gateway.address + "/b").status == 0)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            let old = String(decoding: FileManager.default.contents(atPath: log + ".1") ?? Data(), as: UTF8.self)
            let new = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
            #expect((old + new).contains("GET /a") && new.contains("GET /b") && !old.contains("GET /b"))
        }
    }

    @Test func hupReadsTheSettingsAgain() async throws {
        try await withOrigin { origin, place in
            func settings(_ more: String) throws -> String {
                try place.file("serve.json", Array("{\"origin\": \"\(origin.url)\", \(more)}".utf8))
            }
            let gateway = try await RunningGateway(place, "--config", try settings("\"budget\": 20000000"))
            #expect(gateway.ready["budgetBytes"] as? Int == 20_000_000)
            _ = try settings("\"budget\": \"30MB\", \"maxHead\": \"32KiB\", \"logLevel\": \"error,storing=debug\"")
            gateway.signal(SIGHUP)
            try await gateway.waitUntilItSays("settings reloaded")
            #expect(gateway.errors.contains("the budget is now 30 MB"))
            #expect(gateway.errors.contains("the log levels are now those of the settings"))
            #expect(gateway.errors.contains("restart to apply the changes to: maxHead"))
            #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 30_000_000)
            // The new levels hold: a response that has no room is named.
            origin.script(
                "/large", .ok(String(repeating: "x", count: 20_000_000)).header("Cache-Control", "max-age=60"))
            #expect(try await Workplace().run("fetch", gateway.address + "/large", "--json").status == 0)
            try await gateway.waitUntilItSays("a response is not stored")
            // Without another change it still waits for a restart.
            gateway.signal(SIGHUP)
            try await gateway.waitUntilItSays("changes to: maxHead", count: 2)
            // What cannot be read leaves everything as it is.
            _ = try settings("\"budget\": ")
            gateway.signal(SIGHUP)
            try await gateway.waitUntilItSays("the settings stay as they were")
            #expect(gateway.errors.contains("invalid JSON"))
            #expect(try await Workplace().run("fetch", gateway.address + "/a").text == "hello")
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    @Test func aBudgetThatTheFileNoLongerSetsStays() async throws {
        try await withOrigin { origin, place in
            func settings(_ more: String) throws -> String {
                try place.file("serve.json", Array("{\"origin\": \"\(origin.url)\"\(more)}".utf8))
            }
            let gateway = try await RunningGateway(place, "--config", try settings(", \"budget\": \"20MB\""))
            _ = try settings("")
            gateway.signal(SIGHUP)
            try await gateway.waitUntilItSays("settings reloaded")
            #expect(gateway.errors.contains("the settings have no budget any more: it stays 20 MB"))
            #expect(!gateway.errors.contains("restart"))
            #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 20_000_000)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    @Test func aFileMaySayHowToPrintAndWhoseStoreItIs() async throws {
        let place = try Workplace()
        let file = try place.file("settings", Array(#"{"json": true, "anyOwner": false}"#.utf8))
        let gateway = try await RunningGateway(place, "--origin", "http://127.0.0.1:1", "--config", file)
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
    }

    @Test func aBudgetOfTheCommandLineWinsAtHUPToo() async throws {
        try await withOrigin { origin, place in
            func settings(_ budget: String) throws -> String {
                try place.file("serve.json", Array(#"{"origin": "\#(origin.url)", "budget": "\#(budget)"}"#.utf8))
            }
            let gateway = try await RunningGateway(place, "--config", try settings("20MB"), "--budget", "10MB")
            _ = try settings("30MB")
            gateway.signal(SIGHUP)
            try await gateway.waitUntilItSays("settings reloaded")
            #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 10_000_000)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    @Test func anotherSignalEndsItAtOnce() async throws {
        try await withOrigin { origin, place in
            let gate = Gate()
            origin.script("/slow") { _ in
                try await gate.wait()
                return .ok("late")
            }
            let gateway = try await RunningGateway(place, "--origin", origin.url, "--drain", "1h")
            let client = try Workplace()
            let url = gateway.address + "/slow"
            async let slow = client.run("fetch", url)
            await gate.arrival()
            gateway.signal(SIGTERM)
            try await gateway.waitUntilItSays("draining")
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 130)
            #expect(try await slow.status == 69)
            gate.open()
        }
    }

    @Test func whatCannotStartSaysWhy() async throws {
        let place = try Workplace()
        try await withOrigin { origin, other in
            let gateway = try await RunningGateway(other, "--origin", origin.url)
            let address = String(gateway.address.dropFirst("http://".count))
            func run(_ arguments: String...) async throws -> CommandRun {
                try await CommandRun.cachectl(
                    ["serve", "--store", place.store, "--origin", origin.url] + arguments)
            }
            let taken = try await run("--listen", address)
            #expect(taken.status == 75)
            #expect(taken.errors.hasSuffix("port \(address.split(separator: ":")[1]): Address already in use\n"))
            let nowhere = try await run("--listen", "larder.invalid:8080")
            #expect(nowhere.status == 75 && nowhere.errors.hasSuffix("port 8080: the name has no address\n"))
            let tls = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--certificate"]
            let file = try place.file("text", Array("text".utf8))
            for (certificate, status, text) in [
                (file, 65, "is not a PEM file with a certificate"), (file + ".none", 66, "No such file or directory"),
            ] {
                let run = try await CommandRun.cachectl(
                    ["serve", "--store", place.store, "--origin", origin.url] + tls + [certificate, "--key", file])
                #expect(run.status == status && run.errors.contains("'\(certificate)'") && run.errors.contains(text))
            }
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }

    @Test(arguments: [
        [], ["--origin", "ftp://x"], ["--origin", "http://x", "--origin", "http://y"],
        ["--origin", "http://x", "--listen", "nowhere"], ["--origin", "http://x", "--forward"],
        ["--origin", "http://x", "--listen", ":8080"], ["--origin", "http://x", "--log-format", "json"],
        ["--origin", "http://x", "--tls-listen", "127.0.0.1:0"], ["--origin", "http://x", "--threads", "0"],
        ["--origin", "http://x", "--read-timeout", "0"], ["--origin", "http://x", "--log-level", "loud"],
        ["--origin", "http://x", "--log-level", "storring=debug"],
        ["--origin", "http://x", "--log-level", "storing=debug,info"],
    ])
    func settingsAreChecked(arguments: [String]) async throws {
        let place = try Workplace()
        let run = try await CommandRun.cachectl(["serve", "--store", place.store] + arguments)
        #expect(run.status == 64, "\(arguments): \(run.errors)")
        #expect(run.errors.hasSuffix("\nSee 'cachectl serve --help'.\n") && !run.errors.contains("Usage:"))
        #expect(!FileManager.default.fileExists(atPath: place.store))
    }

    @Test(arguments: [
        (#"{"orgin": ["http://x"]}"#, "line 1: 'orgin' is not a setting"),
        ("{\"origin\": [\"http://x\"],\n\n \"threads\": 0}", "line 3: 'threads': "),
        ("{\"origin\": [\"http://x\"],\n \"listen\": }", "line 2: invalid JSON at column 12"),
        ("{\n\"listen\": {\"a\": 1}}", "line 2: 'listen': use a string"), ("[1]", "must be one object"),
        ("", "line 1: invalid JSON"), (#"{"logFormat": "xml"}"#, "'logFormat': "),
        (#"{"readTimeout": "5 parsecs"}"#, "'readTimeout': "), (#"{"tunnelPort": [443, true]}"#, "'tunnelPort': "),
        (
            #"{"flags": true}"#,
            "line 1: 'flags' is not a setting. Use accessLog, admin, anyOwner, budget, certificate, "
        ),
        ("{\"listen\": 0,\n\"budget\": \"1GB\",\n\"listen\": 0}", "line 3: 'listen' is given twice"),
        ("{\n\"http2\": \"yes\"}", "line 2: 'http2': use true or false\n"),
        (#"{"json": 1}"#, "line 1: 'json': use true or false\n"),
        (#"{"listen": true}"#, "line 1: 'listen': use a string, a number or a list of these\n"),
    ])
    func aFileOfSettingsIsRefusedByLineAndName(text: String, message: String) async throws {
        let place = try Workplace()
        let file = try place.file("settings", Array(text.utf8))
        let run = try await CommandRun.cachectl(["serve", "--store", place.store, "--config", file])
        #expect(run.status == 65 && run.errors.contains(file) && run.errors.contains(message), "\(run.errors)")
        #expect(!run.errors.contains("Decoding"))
    }

    @Test func aFileOfSettingsTakesWhatFlagsTakeAndFlagsWin() async throws {
        try await withOrigin { origin, place in
            let other = place.path.appending("other").string
            let text = """
                {"origin": ["http://127.0.0.1:1"], "store": "\(other)", "readTimeout": "5m", "connectTimeout": 300,
                 "idleTimeout": 300.5, "headTimeout": "300500ms", "budget": 20000000, "http2": false, "forward": false,
                 "purge": true, "tunnel": true, "tunnelPort": [443, 8443], "accessLog": "-", "logFormat": "json"}
                """
            let file = try place.file("settings", Array(text.utf8))
            let gateway = try await RunningGateway(
                place, "--config", file, "--origin", origin.url, "--access-log", place.path.appending("log").string)
            #expect(gateway.ready["origins"] as? [String] == ["every host at \(origin.url)"])
            #expect(gateway.ready["store"] as? String == place.store)
            #expect(gateway.ready["budgetBytes"] as? Int == 20_000_000)
            #expect(try await Workplace().run("fetch", gateway.address + "/a").text == "hello")
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
            let log = FileManager.default.contents(atPath: place.path.appending("log").string) ?? Data()
            #expect(String(decoding: log, as: UTF8.self).contains(#""target":"/a""#))
        }
    }

    @Test func theFileTakesTheNamesOfTheLimits() async throws {
        try await withOrigin { origin, place in
            let file = place.path.appending("settings.json")
            let text = """
                {"originHTTP2": true, "foldEncoding": ["br", "gzip"], "slice": "1MB", "queueTimeout": 5, "totalTimeout": "1m",
                 "memory": "64MiB", "maxClientConnections": 10, "maxClientRequests": 5, "limitLoopback": true, "contentTimeout": "1h",
                 "responseTimeout": "1h", "hotBodies": 0}
                """
            try Data(text.utf8).write(to: URL(filePath: file.string))
            let gateway = try await RunningGateway(place, "--origin", origin.url, "--config", file.string)
            gateway.signal(SIGTERM)
            #expect(try await gateway.end() == 0)
        }
    }
}
