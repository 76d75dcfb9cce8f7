import Foundation
import Larder
import SystemPackage
import Testing

@testable import CachectlCore

@Suite struct ExitStatusTests {
    /// What docs/cachectl.md promises for each code of the library.
    private static let expected: [(code: LarderError.Code, status: Int32)] = [
        (.invalidArgument, 64), (.closed, 70), (.locked, 75), (.io, 74), (.noSpace, 71), (.mapFull, 71),
        (.readersFull, 75), (.corruption, 65), (.formatMismatch, 65), (.digestMismatch, 65), (.lengthMismatch, 65),
        (.tooLarge, 65), (.readOnly, 77), (.unsupported, 69), (.mustReopen, 74), (.incomplete, 75), (.gone, 75),
        (.wrongKey, 77),
    ]

    @Test(arguments: expected)
    func everyCodeHasItsStatus(code: LarderError.Code, status: Int32) {
        #expect(ExitStatus(LarderError(code, "a message")).rawValue == status)
    }

    /// The codes are a struct, so the compiler cannot tell that one has no row.
    @Test func noCodeOfTheLibraryIsLeftOut() throws {
        let source = try Self.text("Sources/Larder/Model/LarderError.swift")
        let declared = Set(source.matches(of: /public static let (\w+) = Code\(/).map { String($0.1) })
        #expect(declared.count > 10, "the declarations of the codes look different now: correct this test")
        #expect(declared == Set(ExitStatus.statuses.keys.map(\.description)))
        #expect(declared == Set(Self.expected.map(\.code.description)))
    }

    @Test func documentNamesEveryCodeWithItsStatus() throws {
        let document = try Self.text("docs/cachectl.md")
        for (code, status) in Self.expected {
            #expect(document.contains("| `\(code)` | \(status) |"), "docs/cachectl.md lacks the row of \(code)")
        }
        for status in ExitStatus.allCases {
            #expect(document.contains("\n| \(status.rawValue) | "), "docs/cachectl.md lacks the status \(status)")
        }
    }

    private static let causes: [(cause: Errno, status: Int32)] = [
        (.permissionDenied, 77), (.notPermitted, 77), (.readOnlyFileSystem, 77), (.noSuchFileOrDirectory, 66),
        (.notDirectory, 66), (.noSpace, 71), (.diskQuotaExceeded, 71), (.brokenPipe, 141), (.ioError, 74),
    ]

    @Test(arguments: causes)
    func failedSystemCallHasTheStatusOfItsCause(cause: Errno, status: Int32) {
        #expect(ExitStatus(LarderError(.io, "a message", cause: cause)).rawValue == status)
    }

    private static func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
