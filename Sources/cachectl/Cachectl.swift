import ArgumentParser
import CachectlCore
import CachectlDemo
import SystemPackage

/// The command line of Larder: each command parses its arguments, calls the libraries and prints. What several commands
/// share is in `CachectlCore`; `demo` and `bench` are in `CachectlDemo`.
@main
struct Cachectl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cachectl",
        abstract: "Inspect and maintain a content-addressed cache store.",
        discussion: """
            Commands take --store PATH (default: larder in the platform's cache directory) and --json. Options follow \
            the command. Other processes may use the store at the same time. Commands that only read do not change it.

            Exit status: 0 success, 1 something found or missing, 64 usage, 65 damaged or unsuitable data, 66 no store \
            or input, 69 not supported, or no answer from the origin, 70 a bug in cachectl, 71 no space, 73 cannot \
            create, 74 input/output error, 75 try again later, 77 permission denied, 130 interrupted, 141 output \
            closed.
            """,
        version: "cachectl 0.1.0",
        groupedSubcommands: [
            CommandGroup(
                name: "Entries",
                subcommands: [
                    GetCommand.self, PutCommand.self, RemoveCommand.self, TouchCommand.self, PinCommand.self,
                    UnpinCommand.self, LeaseCommand.self,
                ]),
            CommandGroup(
                name: "Store",
                subcommands: [
                    StatCommand.self, ListCommand.self, CollectCommand.self, VerifyCommand.self, BudgetCommand.self,
                    KeyCommand.self,
                ]),
            CommandGroup(name: "HTTP", subcommands: [FetchCommand.self, ServeCommand.self]),
            CommandGroup(name: "Build tools", subcommands: [ObjectsCommand.self, CcacheHelperCommand.self]),
            CommandGroup(name: "Packages", subcommands: [PackageCommand.self]),
            CommandGroup(name: "Trees", subcommands: [ImportCommand.self, ExportCommand.self]),
            CommandGroup(
                name: "Trying out",
                subcommands: [
                    BenchCommand.self, DemoCommand.self, CompletionsCommand.self,
                ]),
        ]
    )

    /// The least that a command can work with. With fewer, Swift's runtime ends the program: it has some of its own.
    private static let leastDescriptors = 40

    /// Raises the soft limit of open files: macOS starts with 256, and a gateway with a store needs more. setrlimit(2).
    /// - Returns: the limit.
    private static func raiseDescriptorLimit() -> Int {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        // Darwin refuses more than OPEN_MAX (10,240) whatever the hard limit says.
        let wanted = min(limit.rlim_max, 10_240)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Swift's runtime reads the arguments from /proc on Linux. Without them every command would be none, and succeed.
    private static func requireArguments() throws {
        guard CommandLine.argc < 1 else { return }
        throw CommandError(.inputOutput, "the arguments cannot be read: /proc/self/cmdline is missing or empty")
    }

    /// Refuses arguments that are not UTF-8: `CommandLine.arguments` replaces what is not, so that different keys would
    /// become one.
    private static func requireText() throws {
        for place in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[place], String(validatingCString: argument) == nil else {
                continue
            }
            let text = UnsafeBufferPointer(start: argument, count: strlen(argument)).map { byte -> String in
                let byte = UInt8(bitPattern: byte)
                return (0x20..<0x7F).contains(byte) ? String(UnicodeScalar(byte)) : "\\x" + String(byte, radix: 16)
            }
            throw CommandError(
                .usage,
                "argument \(place) is not valid UTF-8: '\(text.joined())'. Keys and tags on the command line are UTF-8; "
                    + "rename a file whose name is not")
        }
    }

    /// Keeps the places of standard input, output and error that are closed: the next files that are opened would have
    /// them. What is in them cannot be read, or not written, so that their use is an error as before.
    private static func fillStandardDescriptors() {
        for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 {
            _ = open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    static func main() {
        fillStandardDescriptors()
        // A closed output is an error to handle: the store has to be closed before the program ends.
        signal(SIGPIPE, SIG_IGN)
        // So is a file that reaches its limit (RLIMIT_FSIZE), as a full disk is.
        signal(SIGXFSZ, SIG_IGN)
        // For `serve`, which handles it. `pkill -USR1 cachectl` must not end other commands that are running.
        signal(SIGUSR1, SIG_IGN)
        let descriptors = raiseDescriptorLimit()
        var arguments = Array(CommandLine.arguments.dropFirst())
        // ccache starts its helper by a name, without arguments.
        if FilePath(CommandLine.arguments.first ?? "").lastComponent?.string == CcacheHelperCommand.programName,
            arguments.isEmpty
        {
            arguments = ["ccache-helper"]
        }
        var name: String?
        do {
            try requireArguments()
            try requireText()
            try CommandLineHints.check(arguments)
            var command = try parseAsRoot(arguments)
            name = type(of: command).configuration.commandName
            if PackageCommand.has(command) { name = name.map { "package " + $0 } }
            guard descriptors >= leastDescriptors else {
                throw CommandError(
                    .inputOutput,
                    "\(descriptors) files may be open, and cachectl needs \(leastDescriptors): raise the limit (ulimit -n)"
                )
            }
            try command.run()
        } catch {
            // The parser may have failed, so look for the word itself.
            let wantsJSON = arguments.prefix { $0 != "--" }.contains("--json")
            ErrorReport(error, command: name).leave(asJSON: wantsJSON)
        }
    }
}
