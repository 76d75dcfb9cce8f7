import Foundation
import TestSupport
import Testing

/// Commands that take a selection leave packages alone; those that take a URL find members.
@Suite struct PackageHousekeepingTests {
    @Test func selectionsLeavePackagesAlone() throws {
        let place = try Workplace()
        for name in ["a.html", "b.html"] { _ = try place.file("site/\(name)", Array(name.utf8)) }
        _ = try place.file("own/settings", Array("mine".utf8))
        let archive = place.path.appending("p.zip").string
        #expect(
            try CommandRun.cachectl([
                "package", "create", "--folder", place.path.appending("site").string, "--base-url", "http://a.example",
                "--user-data", place.path.appending("own").string, "--max-age", "3600", "-o", archive,
            ]).status == 0)
        #expect(try place.run("package", "install", archive, "--mode", "pin", "--name", "p").status == 0)
        #expect(try place.run("put", "other", archive).status == 0)
        // What is listed is what is removed, pinned, touched and exported.
        let listed = try place.run("ls").text
        #expect(listed.contains("other") && !listed.contains("a.html"))
        #expect(try place.run("rm", "--unused-for", "0s", "--json").json["removed"] as? Int == 1)
        #expect(try place.run("rm", "--prefix", "http://a.example/", "--json").json["removed"] as? Int == 0)
        #expect(try place.run("unpin", "--host", "a.example").status == 0)
        let folder = place.path.appending("exported").string
        #expect(try place.run("export", folder).status == 0)
        #expect(TestFiles.tree(place.path.appending("exported")).isEmpty)
        #expect(try place.run("gc").status == 0)
        #expect(try place.run("package", "verify", "p", "--deep").text == "2 intact\n")
        #expect(try place.run("package", "show", "p", "--data", "settings").text == "mine")
        #expect(try place.run("fetch", "--offline", "http://a.example/a.html").text == "a.html")
        #expect(try place.run("get", "http://a.example/b.html").text == "b.html")
        #expect(try place.run("stat", "http://a.example/b.html").status == 0)
        #expect(try place.run("verify").status == 0)
        // All is not a selection: the store is empty then.
        #expect(try place.run("package", "remove", "p").status == 0)
        #expect(try place.run("ls", "--all").text.split(separator: "\n").count <= 1)
    }
}
