import Foundation

/// The gateway under attack, in a process of its own.
final class GatewayProcess {
    let process = Process()
    private(set) var port = 0
    private(set) var tlsPort = 0
    private(set) var adminPort = 0
    let log: URL

    struct CannotStart: Error, CustomStringConvertible {
        let description: String
    }

    /// Starts it and waits for its addresses.
    /// - Parameters:
    ///   - directory: where the certificate is.
    ///   - place: for the store and what the gateway says.
    init(_ cachectl: String, origin: String, directory: URL, store place: URL, flags: [String]) throws {
        log = place.appendingPathComponent("gateway.log")
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        process.executableURL = URL(fileURLWithPath: cachectl)
        process.arguments =
            [
                "serve", "--origin", origin, "--store", place.appendingPathComponent("store").path, "--listen",
                "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--certificate",
                directory.appendingPathComponent("certificate.pem").path, "--key",
                directory.appendingPathComponent("key.pem").path, "--admin", "127.0.0.1:0", "--budget", "512MiB",
                "--json",
            ] + flags
        let output = Pipe()
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: log)
        try process.run()
        var text = Data()
        while !text.contains(10) {
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else {
                throw CannotStart(description: (try? String(contentsOf: log, encoding: .utf8)) ?? "no output")
            }
            text += more
        }
        let addresses = try JSONDecoder().decode(Addresses.self, from: text)
        port = Self.port(addresses.address)
        tlsPort = Self.port(addresses.tls)
        adminPort = Self.port(addresses.admin)
    }

    private struct Addresses: Decodable {
        var address: String?
        var tls: String?
        var admin: String?
    }

    private static func port(_ url: String?) -> Int {
        url.flatMap { $0.split(separator: ":").last }.flatMap { Int($0) } ?? 0
    }

    /// What it takes up; nil when it is gone.
    var usage: (memory: Int, descriptors: Int, written: Int64)? {
        ProcessUsage(process.processIdentifier).look()
    }

    /// What it said that it should not have had to: of the library's that runs it.
    var complaints: String {
        let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter {
            $0.contains("MISUSE") || $0.contains("Cannot schedule") || $0.contains("Fatal")
        }.prefix(3).joined(separator: "; ")
    }

    /// Asks it to end; false if it did not end in time, or with another status than 0.
    func stop() -> Bool {
        process.terminate()
        let deadline = Date().addingTimeInterval(15)
        while process.isRunning, Date() < deadline { usleep(20_000) }
        guard !process.isRunning else {
            kill(process.processIdentifier, SIGKILL)
            return false
        }
        return process.terminationStatus == 0
    }
}
