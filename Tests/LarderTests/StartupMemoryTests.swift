import CLarder
import Testing

/// Code and constants that only the start of a server needed.
struct StartupMemoryTests {
    /// What the loader wrote, such as the pointers in `names`, is not in any file.
    @Test func aProgramRunsOnAfterItIsReleased() {
        let names: [StaticString] = ["first", "second"]
        let bytes = clarder_release_startup_memory()
        #if os(Linux)
            #expect(bytes > 1 << 20)
        #else
            #expect(bytes == 0)
        #endif
        #expect(names.map { "\($0)".uppercased() } == ["FIRST", "SECOND"])
        #expect(Self.shapes.map { $0.name } == ["circle", "square"])
    }

    private static let shapes: [any Shape] = [Circle(), Square()]
}

/// Called by tables of functions, which the loader fills.
private protocol Shape: Sendable { var name: String { get } }

private struct Circle: Shape { var name: String { "circle" } }

private struct Square: Shape { var name: String { "square" } }
