import Foundation
import TestSupport

/// A user who may do less than root, for tests that root runs.
enum AnotherUser {
    private static let id = 65_534
    private static let setpriv = "/usr/bin/setpriv"

    /// Starts a program as that user, who owns nothing and is in no group. Source: setpriv(1).
    private static let start = [setpriv, "--reuid", "\(id)", "--regid", "\(id)", "--clear-groups"]

    /// Whether the tests are run by root, and that user can start the program: the toolchain's libraries may be out of
    /// reach.
    static let canRunPrograms: Bool = {
        guard geteuid() == 0, FileManager.default.isExecutableFile(atPath: setpriv), let place = try? Workplace(),
            let prefix = try? prefix(for: place),
            let process = try? CommandRun.start(["--version"], prefix: prefix)
        else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// What starts cachectl as that user: a copy in a directory that then belongs to them.
    static func prefix(for place: Workplace) throws -> [String] {
        let program = place.path.appending("cachectl").string
        try FileManager.default.copyItem(atPath: CommandRun.path, toPath: program)
        try FileManager.default.setAttributes(
            [.ownerAccountID: id, .groupOwnerAccountID: id], ofItemAtPath: place.path.string)
        return start + [program]
    }
}
