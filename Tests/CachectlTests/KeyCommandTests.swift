import Foundation
import TestSupport
import Testing

/// `cachectl` with encrypted stores.
@Suite struct KeyCommandTests {
    private let place: Workplace

    init() throws { place = try Workplace() }

    private func run(
        _ arguments: String..., input: [UInt8]? = nil, environment: [String: String] = [:]
    ) throws -> CommandRun {
        try CommandRun.cachectl(arguments + ["--store", place.store], input: input, environment: environment)
    }

    private func keyFile(_ name: String) throws -> String {
        let path = place.path.string + "/" + name
        #expect(try CommandRun.cachectl(["key", "create", path]).status == 0)
        return path
    }

    @Test func everyCommandTakesTheKeyFromAFile() throws {
        let key = try keyFile("key")
        try #expect(run("put", "k", "--key-file", key, input: Array("hello".utf8)).status == 0)
        try #expect(run("get", "k", "--key-file", key).text == "hello")
        try #expect(run("stat", "--key-file", key).text.contains(", encrypted\n"))
        try #expect(run("stat", "--json", "--key-file", key).json["isEncrypted"] as? Bool == true)
        try #expect(run("ls", "--key-file", key).text.contains("k"))
        try #expect(run("verify", "--key-file", key).status == 0)
        try #expect(run("verify", "--repair", "--key-file", key).status == 0)
        try #expect(run("gc", "--key-file", key).status == 0)
        for command in ["get", "put", "stat", "verify", "gc", "ls"] {
            let operands = ["get", "put"].contains(command) ? [command, "k"] : [command]
            let without = try CommandRun.cachectl(operands + ["--store", place.store], input: [])
            #expect(without.status == 77 && without.errors.contains("opens with its key only"), "\(command)")
            let other = try CommandRun.cachectl(
                operands + ["--store", place.store, "--key-file", keyFile("other \(command)")], input: [])
            #expect(other.status == 77 && other.errors.contains("this is not the key"), "\(command)")
        }
        let repair = try run("verify", "--repair")
        #expect(repair.status == 77)
        try #expect(run("get", "k", "--key-file", key).text == "hello")
    }

    @Test func theEnvironmentHasTheKey() throws {
        let key = try keyFile("key")
        let digits = try String(contentsOfFile: key, encoding: .utf8).trimmingCharacters(in: .newlines)
        try #expect(run("put", "k", input: [1], environment: ["LARDER_KEY_FILE": key]).status == 0)
        try #expect(run("get", "k", environment: ["LARDER_KEY": digits]).output == [1])
        // The argument comes first.
        try #expect(run("get", "k", "--key-file", key, environment: ["LARDER_KEY": "x"]).output == [1])
        try #expect(run("get", "k", environment: ["LARDER_PASSPHRASE": "p"]).status == 77)
        let both = try run("get", "k", environment: ["LARDER_KEY": digits, "LARDER_KEY_FILE": key])
        #expect(both.status == 64 && both.errors.contains("are set: a store has one key"))
        let bad = try run("get", "k", environment: ["LARDER_KEY": String(digits.dropLast())])
        #expect(bad.status == 64 && bad.errors.contains("LARDER_KEY is not 64 hexadecimal digits"))
        #expect(!bad.errors.contains(digits.prefix(16)))
        let asFile = try run("get", "k", "--key-file", digits)
        #expect(asFile.status == 64 && !asFile.errors.contains(digits.prefix(16)))
        try #expect(run("get", "k", environment: ["LARDER_PASSPHRASE": ""]).status == 64)
    }

    @Test func theKeyIsChanged() throws {
        let (old, new) = (try keyFile("old"), try keyFile("new"))
        try #expect(run("put", "k", "--key-file", old, input: [1]).status == 0)
        try #expect(run("key", "change", "--key-file", new, "--new-key-file", old).status == 77)
        try #expect(run("key", "change", "--key-file", old).status == 64)
        try #expect(run("key", "change", "--new-key-file", new).status == 64)
        try #expect(run("key", "change", "--key-file", old, "--new-key-file", new).status == 0)
        try #expect(run("get", "k", "--key-file", old).status == 77)
        try #expect(run("get", "k", "--key-file", new).output == [1])
        let passphrase = ["LARDER_NEW_PASSPHRASE": "correct horse", "LARDER_KEY_FILE": new]
        try #expect(run("key", "change", environment: passphrase).status == 0)
        try #expect(run("get", "k", environment: ["LARDER_PASSPHRASE": "correct horse"]).output == [1])
    }

    @Test func aKeyFileThatOthersCanReadIsRefused() throws {
        let key = try keyFile("key")
        #expect(chmod(key, 0o644) == 0)
        let refused = try run("put", "k", "--key-file", key, input: [1])
        #expect(refused.status == 64 && refused.errors.contains("chmod 600"))
        #expect(!FileManager.default.fileExists(atPath: place.store + "/FORMAT"))
        // And none is overwritten.
        let again = try CommandRun.cachectl(["key", "create", key])
        #expect(again.status == 73 && again.errors.contains("a key is never overwritten"))
        let none = try run("put", "k", "--key-file", key + "-none", input: [1])
        #expect(none.status == 66)
    }
}
