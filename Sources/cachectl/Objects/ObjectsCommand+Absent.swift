#if !LarderObjectsGRPC
    import ArgumentParser
    import CachectlCore

    /// `objects` in a build without the trait `LarderObjectsGRPC`: says what to build.
    struct ObjectsCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "objects",
            abstract: "Run an object server for build tools (not in this build).")

        @Argument(parsing: .captureForPassthrough, help: .hidden)
        var arguments: [String] = []

        func run() throws {
            throw CommandError(
                .unavailable,
                """
                this build of cachectl has no object server: build it with the package trait LarderObjectsGRPC, as \
                'swift build' and 'tools/run objects' do
                """)
        }
    }
#endif
