import Foundation
import Larder
import Recipes

/// An app and a tool that use one store. Each may be killed at any moment; neither is a server for the other.
@main
enum SharedStore {
    static let path = "shared"

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "tool" { try await tool() } else { try await app() }
    }

    static func app() async throws {
        // The budget is kept in the store, so the tool obeys it, too.
        let store = try Store(at: path, Configuration(budget: Budget(bytes: .megabytes(100))))
        try await store.put(Array("1".utf8), for: "settings", PutOptions(durability: .durable))
        try await store.put(Array("old".utf8), for: "draft")

        // Four tools start at once, and all need the report, which is expensive.
        let tools = try (0..<4).map { _ in
            try Process.run(URL(fileURLWithPath: CommandLine.arguments[0]), arguments: ["tool"])
        }
        for tool in tools {
            tool.waitUntilExit()
            expect(tool.terminationStatus == 0, "the tool failed")
        }

        let report = try await store.get("report")
        print("the tools made the report \(try await store.perform { try $0.keys(.prefix("made by ")).count }) time(s)")
        try await expect(report?.body.bytes() == Array("settings 1".utf8))
        try await expect(store.perform { try $0.keys(.prefix("made by ")).count } == 1)
        try expect(!store.contains("draft"), "the app does not see that a tool removed the draft")
        try await store.close()
    }

    static func tool() async throws {
        let store = try Store(at: path)
        // One of the processes has the claim and computes; the others wait for it and find the value.
        let report = try await store.value(for: "report", ReadThroughOptions(others: .wait(.seconds(30)))) { _ in
            try await store.put([1], for: Key("made by \(ProcessInfo.processInfo.processIdentifier)"))
            let settings = try await store.get("settings")
            return try await Computed(Array("settings ".utf8) + (settings?.body.bytes() ?? []))
        }
        expect(report != nil)
        try await store.remove("draft", durability: .durable)
        try await store.close()
    }
}
