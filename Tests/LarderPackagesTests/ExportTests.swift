import Foundation
import HTTPTypes
import Larder
import LarderHTTP
import LarderPackages
import SystemPackage
import TestSupport
import Testing

@Suite struct ExportTests {
    @Test func aSelectionMovesToAnotherStore() async throws {
        try await Setting.run { setting in
            try await setting.fetched("http://a.example/x?q=1", "query", lastModified: "Mon, 01 Dec 2025 00:00:00 GMT")
            try await setting.fetched("http://a.example/dir/", "slash")
            try await setting.fetched("http://a.example/dir", "no slash")
            try await setting.fetched("http://a.example/dir/file", "file")
            try await setting.fetched("http://b.example/other", "other")
            let archive = setting.directory.appending("export.zip")
            let summary = try await setting.packages.export(.host("a.example"), to: archive)
            #expect(summary.members == 4 && summary.skipped.isEmpty)
            // What unpacks it must be able to: no file is a folder, too.
            #expect(try Self.unpack(archive, to: setting.directory.appending("out")) == 0)
            try await Setting.run { target in
                try await target.packages.install(archive)
                try await #expect(target.offline("http://a.example/x?q=1") == "query")
                try await #expect(target.offline("http://a.example/dir/") == "slash")
                try await #expect(target.offline("http://a.example/dir") == "no slash")
                try await #expect(target.offline("http://a.example/dir/file") == "file")
                try await #expect(target.offline("http://b.example/other") == nil)
                let response = try #require(try await target.response("http://a.example/x?q=1"))
                #expect(response.head.headerFields[.cacheControl] == "max-age=3600")
                #expect(response.freshSeconds == 3_600)
            }
        }
    }

    @Test func whatCannotBePacked() async throws {
        try await Setting.run { setting in
            try await setting.store.put([1], for: "http://a.example/no-response")
            try await setting.store.put([1], for: "no url")
            try await setting.packages.install(setting.package(["a": "1"]))
            try await setting.fetched("http://a.example/own", "mine", cacheControl: "private, max-age=60")
            let archive = setting.directory.appending("export.zip")
            let summary = try await setting.packages.export(to: archive)
            #expect(summary.members == 1)
            #expect(summary.skipped == ["http://a.example/own": "for one user only"])
            try await #expect(
                packageCode {
                    try await setting.packages.export(to: setting.directory.appending("no/such/folder/x.zip"))
                } == .io)
        }
    }

    private static func unpack(_ archive: FilePath, to folder: FilePath) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c", "import sys,zipfile;zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])", archive.string,
            folder.string,
        ]
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
