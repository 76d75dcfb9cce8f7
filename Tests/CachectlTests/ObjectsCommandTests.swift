import Foundation
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `objects` as a user starts it. What it answers is tested in LarderObjectsTests.
struct ObjectsCommandTests {
    private func objects(_ place: Workplace, _ arguments: String...) async throws -> CommandRun {
        try await CommandRun.cachectl(["objects", "--store", place.store, "--listen", "127.0.0.1:0"] + arguments)
    }

    @Test func itServesAndEnds() async throws {
        let place = try Workplace()
        let log = try place.file("log", [])
        let server = try await RunningGateway(
            place, "--grpc-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--budget", "100MB", "--access-log", log,
            command: "objects")
        #expect((server.ready["grpc"] as? String ?? "").hasPrefix("grpc://127.0.0.1:"))
        #expect(server.ready["budgetBytes"] as? Int == 100_000_000)
        let url = try #require(URL(string: server.address + "/notes/a"))
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        request.httpBody = Data("text".utf8)
        let (_, stored) = try await URLSession.shared.data(for: request)
        #expect((stored as? HTTPURLResponse)?.statusCode == 201)
        #expect(try await URLSession.shared.data(from: url).0 == Data("text".utf8))
        let metrics = try #require(URL(string: (server.ready["admin"] as? String ?? "") + "/metrics"))
        let figures = String(decoding: try await URLSession.shared.data(from: metrics).0, as: UTF8.self)
        #expect(
            figures.contains("larder_objects_uploads_total 1\n") && figures.contains("larder_objects_hits_total 1\n"))
        server.signal(SIGTERM)
        #expect(try await server.end() == 0)
        let lines = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
        #expect(lines.contains("\"PUT /notes/a HTTP/1.1\" 201"))
        #expect(try await place.run("get", "/notes/a").text == "text")
    }

    /// What is promised above a new budget goes with time: that keeps no server from starting.
    @Test(arguments: ["objects", "serve"]) func aBudgetBelowWhatIsPinned(command: String) async throws {
        let place = try Workplace()
        #expect(try await place.run("put", "k", try place.file("in", body(4_000_000)), "--pin").status == 0)
        let server =
            command == "serve"
            ? try await RunningGateway(place, "--budget", "2MiB", "--origin", "http://127.0.0.1:1")
            : try await RunningGateway(place, "--budget", "2MiB", command: command)
        #expect(server.ready["budgetBytes"] as? Int == 2 << 20)
        server.signal(SIGTERM)
        #expect(try await server.end() == 0)
        #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 2 << 20)
        #expect(try await place.run("get", "k").output.count == 4_000_000)
    }

    @Test func settingsThatAreNotValid() async throws {
        let place = try Workplace()
        let cases = [
            (["--listen", "0.0.0.0:0"], 64), (["--certificate", "x"], 64),
            (["--tls-listen", "127.0.0.1:0"], 64), (["--grpc-listen", "127.0.0.1:0", "--key", "x"], 64),
            (["--anonymous", "everything"], 64), (["--promise", "soon"], 64), (["--users", "/no/such/file"], 66),
        ]
        for (arguments, status) in cases {
            let run = try await CommandRun.cachectl(["objects", "--store", place.store] + arguments)
            #expect(run.status == Int32(status), "\(arguments): \(run.errors)")
        }
    }

    @Test(arguments: [
        "nothing", "{}", #"{"users": [{"name": "", "right": "read", "password": "x"}]}"#,
        #"{"users": [{"name": "a", "right": "read"}]}"#, #"{"users": [{"name": "a", "password": "x"}]}"#,
        #"{"users": [{"name": "a:b", "password": "x", "right": "read"}]}"#,
        #"{"users": [{"name": "a", "password": "", "right": "read"}]}"#,
        #"{"users": [{"name": "a", "password": "x", "sha256": "y", "right": "read"}]}"#,
        #"{"users": [{"name": "a", "sha256": "y", "right": "read"}]}"#,
        #"{"users": [{"name": "a", "password": "x", "right": "write", "prefix": ["/a"]}]}"#,
        #"{"users": [{"name": "a", "password": "x", "right": "read"}, {"name": "a", "password": "z", "right": "read"}]}"#,
        #"{"users": [{"name": "a", "password": "x", "right": "all"}]}"#,
        #"{"users": [{"name": "a", "password": "x", "right": "read", "prefixes": ["team"]}]}"#,
    ]) func usersThatAreNotValid(text: String) async throws {
        let place = try Workplace()
        let run = try await objects(place, "--users", try place.file("users", Array(text.utf8)))
        #expect(run.status == 65 && run.errors.contains("users"), "\(run.errors)")
    }
}
