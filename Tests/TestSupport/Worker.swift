import Foundation

/// A `LarderTestWorker` process.
public final class Worker {
    private let process = Process()
    private let output = Pipe()

    /// Where the build put the executable: next to the test bundle.
    public static func executable(_ name: String = "LarderTestWorker") -> URL {
        #if os(macOS)
            let products = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
                .deletingLastPathComponent()
            return (products ?? Bundle.main.bundleURL).appendingPathComponent(name)
        #else
            return Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent(name)
        #endif
    }

    /// Starts a worker; see `LarderTestWorker/main.swift` for the modes.
    /// - Parameters:
    ///   - environment: variables in addition to those of this process.
    ///   - isContained: in a separate PID namespace, as the first process of a container; see `canContain`.
    public init(
        store: String, mode: String, seed: UInt64, count: Int, environment: [String: String] = [:],
        isContained: Bool = false
    ) throws {
        let arguments = [store, mode, "\(seed)", "\(count)"]
        process.executableURL = isContained ? URL(fileURLWithPath: "/usr/bin/unshare") : Self.executable()
        process.arguments = isContained ? Self.container + [Self.executable().path] + arguments : arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    private static let container = ["--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]

    /// Whether this machine lets this user create PID namespaces: Linux, as root, with unshare(1).
    public static let canContain: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        process.arguments = container + ["/bin/true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Waits for the first line: the store is open.
    public func waitUntilReady() {
        _ = output.fileHandleForReading.readData(ofLength: 6)
    }

    /// Waits for the next line, which is `line`.
    public func waitForLine(_ line: String) {
        _ = output.fileHandleForReading.readData(ofLength: line.utf8.count + 1)
    }

    /// SIGSTOP.
    public func stop() {
        #if canImport(Glibc)
            _ = Glibc.kill(process.processIdentifier, SIGSTOP)
        #else
            _ = Foundation.kill(process.processIdentifier, SIGSTOP)
        #endif
    }

    /// SIGKILL.
    public func kill() {
        #if canImport(Glibc)
            _ = Glibc.kill(process.processIdentifier, SIGKILL)
        #elseif canImport(Darwin)
            _ = Darwin.kill(process.processIdentifier, SIGKILL)
        #else
            _ = Foundation.kill(process.processIdentifier, SIGKILL)
        #endif
    }

    /// Waits for its end only. What it printed may still be held open by a process that was started meanwhile.
    public func waitUntilEnd() { process.waitUntilExit() }

    /// Reads everything it printed and waits for its end; returns the lines.
    public func finish() -> [String] {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
