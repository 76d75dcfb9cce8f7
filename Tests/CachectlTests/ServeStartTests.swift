import Foundation
import TestOrigin
import TestSupport
import Testing

/// How `serve` starts: what it checks before it changes anything, and what it warns of.
struct ServeStartTests {
    /// The program on the store, with an origin that nothing listens on.
    private func serve(_ place: Workplace, _ arguments: [String]) async throws -> CommandRun {
        try await CommandRun.cachectl(["serve", "--store", place.store, "--origin", "http://127.0.0.1:1"] + arguments)
    }

    /// A budget that is applied too early displaces the entries of a gateway that is running on the store.
    @Test func aStartThatFailsKeepsBudgetAndEntries() async throws {
        let place = try Workplace()
        for number in 0..<3 {
            let bytes = body(1_000_000, number)
            #expect(try place.run("put", "key-\(number)", input: bytes).status == 0)
        }
        #expect(try await place.run("budget", "--bytes", "20MB").status == 0)
        let gateway = try await RunningGateway(place, "--origin", "http://127.0.0.1:1")
        let taken = String(gateway.address.dropFirst("http://".count))
        let nowhere = place.path.appending("missing").appending("file").string
        let free = ["--listen", "127.0.0.1:0"]
        for arguments in [
            ["--listen", taken], free + ["--admin", taken], free + ["--access-log", nowhere],
            free + ["--tls-listen", "127.0.0.1:0", "--certificate", nowhere, "--key", nowhere],
        ] {
            let run = try await serve(place, arguments + ["--budget", "1MiB"])
            #expect(run.status != 0, "\(arguments)")
            let state = try await place.run("stat", "--json").json
            #expect(state["entryCount"] as? Int == 3, "\(arguments)")
            #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 20_000_000, "\(arguments)")
        }
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
    }

    /// A store that has no budget gets none from a start that fails.
    @Test func aStartThatFailsSetsNoBudget() async throws {
        let place = try Workplace()
        #expect(try place.run("put", "key", input: [1]).status == 0)
        let run = try await serve(place, ["--listen", "larder.invalid:8080"])
        #expect(run.status == 75)
        #expect(try await place.run("budget", "--json").json["bytes"] is NSNull)
    }

    @Test func settingsCanBeCheckedWithoutAStart() async throws {
        let place = try Workplace()
        let gateway = try await RunningGateway(try Workplace(), "--origin", "http://127.0.0.1:1")
        let taken = String(gateway.address.dropFirst("http://".count))
        let file = try place.file("settings", Array(#"{"listen": "\#(taken)", "origin": "http://127.0.0.1:1"}"#.utf8))
        func check(_ arguments: String...) async throws -> CommandRun {
            try await CommandRun.cachectl(["serve", "--check", "--store", place.store] + arguments)
        }
        let valid = try await check("--config", file)
        #expect(valid.status == 0, "\(valid.errors)")
        #expect(valid.text == "origin for every host at http://127.0.0.1:1\nthe settings are valid\n")
        #expect(try await check("--config", file, "--json").json["origins"] as? [String] != nil)
        let nowhere = place.path.appending("missing").string
        let tls = ["--tls-listen", "127.0.0.1:0", "--certificate", nowhere, "--key", nowhere]
        let missing = try await CommandRun.cachectl(["serve", "--check", "--config", file] + tls)
        #expect(missing.status == 66 && missing.errors.contains("cannot open '\(nowhere)'"))
        #expect(try await check().status == 64)
        let twice = try await check("--config", file, "--admin", taken)
        #expect(twice.status == 64 && twice.errors.contains("is that of --listen"), "\(twice.errors)")
        _ = try place.file("settings", Array(#"{"orgin": "http://127.0.0.1:1"}"#.utf8))
        #expect(try await check("--config", file).status == 65)
        #expect(!FileManager.default.fileExists(atPath: place.store))
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
    }

    /// The response is stale from the start, so that no time has to pass.
    @Test(arguments: [("1h", 0), ("0", 1)]) func howStaleAResponseMayBeIsASetting(limit: String, failures: Int)
        async throws
    {
        let origin = try await TestOrigin.start()
        origin.script(
            "/a", .ok("hello").header("Cache-Control", "max-age=10").header("Age", "20").header("ETag", "\"1\""))
        let place = try Workplace()
        let gateway = try await RunningGateway(place, "--origin", origin.url, "--stale-limit", limit)
        let client = try Workplace()
        #expect(try await client.run("fetch", gateway.address + "/a", "--policy", "do-not-read").text == "hello")
        await origin.stop()
        let run = try await client.run("fetch", "-f", gateway.address + "/a", "--policy", "do-not-read")
        #expect(run.status == failures, "\(run.text) \(run.errors)")
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
    }

    @Test(arguments: [([], "old"), (["--set-cookie", "never"], "new"), (["--set-cookie", "ignore"], "old")])
    func whetherAResponseWithACookieIsStoredIsASetting(arguments: [String], second: String) async throws {
        let origin = try await TestOrigin.start()
        let answers = ["old", "new"].map {
            OriginAnswer.ok($0).header("Cache-Control", "max-age=60").header("Set-Cookie", "a=b")
        }
        origin.script("/a", answers[0], answers[1])
        let place = try Workplace()
        let gateway = try await RunningGateway(place, arguments: ["--origin", origin.url] + arguments)
        let client = try Workplace()
        for expected in ["old", second] {
            #expect(try await client.run("fetch", gateway.address + "/a", "--policy", "do-not-read").text == expected)
        }
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
        await origin.stop()
    }

    @Test(arguments: [([], 1), (["--stale-on-error"], 0)])
    func staleInPlaceOfAnErrorIsASetting(arguments: [String], failures: Int) async throws {
        let origin = try await TestOrigin.start()
        // Stale from the start, so that no time has to pass; without the setting 501 is passed on.
        origin.script(
            "/a", .ok("hello").header("Cache-Control", "max-age=10").header("Age", "20").header("ETag", "\"1\""),
            .status(501))
        let place = try Workplace()
        let gateway = try await RunningGateway(
            place, arguments: ["--origin", origin.url, "--keep-field", "Content-Encoding", "--trust-age"] + arguments)
        let client = try Workplace()
        #expect(try await client.run("fetch", gateway.address + "/a", "--policy", "do-not-read").text == "hello")
        let run = try await client.run("fetch", "-f", gateway.address + "/a", "--policy", "do-not-read")
        #expect(run.status == failures, "\(run.text) \(run.errors)")
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
        await origin.stop()
    }

    @Test func fewerConnectionsThanConfiguredAreNamed() async throws {
        let place = try Workplace()
        let prefix = ["/bin/sh", "-c", #"ulimit -n 256; exec "$@""#, "sh", CommandRun.path]
        let gateway = try await RunningGateway(place, "--origin", "http://127.0.0.1:1", prefix: prefix)
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
        #expect(gateway.errors.contains("at most 128 client connections instead of 16384"), "\(gateway.errors)")
        #expect(gateway.errors.contains("--max-connections"))
        // A start that fails says why, and nothing else.
        let other = try Workplace()
        let process = try CommandRun.start(
            ["serve", "--store", other.store, "--origin", "http://127.0.0.1:1", "--listen", "larder.invalid:8080"],
            prefix: prefix, errors: try FileHandle(forWritingTo: URL(filePath: try other.file("errors", []))))
        await process.exit()
        let errors = String(
            decoding: FileManager.default.contents(atPath: other.path.appending("errors").string) ?? Data(),
            as: UTF8.self)
        #expect(errors.hasPrefix("cachectl: cannot listen on larder.invalid"), "\(errors)")
    }

    @Test(arguments: [(0o600, false), (0o640, false), (0o644, true)])
    func aKeyThatEveryUserCanReadIsNamed(mode: Int, isNamed: Bool) async throws {
        let place = try Workplace()
        let certificate = try place.file("chain.pem", Array(OriginCertificate.local.certificatePEM.utf8))
        let key = try place.file("key.pem", Array(OriginCertificate.local.keyPEM.utf8))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key)
        let gateway = try await RunningGateway(
            place, "--origin", "http://127.0.0.1:1", "--tls-listen", "127.0.0.1:0", "--certificate", certificate,
            "--key", key)
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
        #expect(gateway.errors.contains("every user of this machine can read the private key") == isNamed)
    }

    @Test(arguments: [
        (["--max-head", "1KB"], "Use 1KiB ... 16MiB."), (["--slice", "1KB"], "Use 64KiB ... 16MiB."),
        (["--memory", "1MB"], "Use 1MiB ... 1TiB."),
        (["--tunnel-port", "443"], "--tunnel-port needs --tunnel"), (["--purge-token", ""], "--purge-token is empty"),
        (["--fold-encoding", "br,gzip"], "'br,gzip' is not a content coding"),
        (["--fold-encoding", "br gzip;"], "'br gzip;' is not a content coding"),
        (["--fold-encoding", ""], "'' is not a content coding"),
    ])
    func aMessageSaysWhatToWrite(arguments: [String], message: String) async throws {
        let place = try Workplace()
        let run = try await serve(place, arguments)
        #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        #expect(!FileManager.default.fileExists(atPath: place.store))
    }
}
