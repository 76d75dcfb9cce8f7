import Foundation

/// Other programs, waited for.
enum Subprocess {
    /// This program: on Linux the file that runs, even if a build has replaced it since.
    static var ownExecutable: String {
        #if os(Linux)
            "/proc/self/exe"
        #else
            CommandLine.arguments[0]
        #endif
    }

    /// Runs a program and returns what it printed. Throws if it fails; its messages go to our standard error.
    static func run(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws -> Data {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        if !environment.isEmpty {
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            try Interruption.check()
            throw BenchError(
                "\(URL(fileURLWithPath: program).lastPathComponent) ended with \(process.terminationStatus)")
        }
        return data
    }
}
