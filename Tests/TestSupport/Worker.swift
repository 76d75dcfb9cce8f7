import Foundation

/// A `LarderTestWorker` process.
public final class Worker {
    private let process = Process()
    private let output = Pipe()

    /// Where the build put the executable: beside the test bundle.
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
    /// - Parameter environment: variables besides those of this process.
    public init(store: String, mode: String, seed: UInt64, count: Int, environment: [String: String] = [:]) throws {
        process.executableURL = Self.executable()
        process.arguments = [store, mode, "\(seed)", "\(count)"]
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

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

    /// Reads everything it printed and waits for its end; returns the lines.
    public func finish() -> [String] {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
