// The main program of the test bundle on Linux, which SwiftPM finds by its name. The one that it makes otherwise looks
// for tests of XCTest, which this tree does not have, in an index of all sources: with this one, the index need not be
// made.
import Testing

@main
struct TestMain {
    static func main() async {
        // 'swift test' starts the program for XCTest, too.
        let arguments = CommandLine.arguments
        guard let option = arguments.firstIndex(of: "--testing-library"), option + 1 < arguments.count,
            arguments[option + 1] == "swift-testing"
        else { return }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
