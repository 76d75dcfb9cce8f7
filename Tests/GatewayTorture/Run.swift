import Foundation
import TestOrigin

/// Prints a line at once, also into a pipe.
func say(_ line: String) {
    print(line)
    fflush(nil)
}

/// The whole run: an origin, a gateway, one attack after another.
struct Run {
    let options: Options

    init(_ options: Options) { self.options = options }

    func run() async throws -> Bool {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-gateway-torture-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { if !options.keeps { try? FileManager.default.removeItem(at: directory) } }
        try Data(OriginCertificate.local.certificatePEM.utf8).write(
            to: directory.appendingPathComponent("certificate.pem"))
        try Data(OriginCertificate.local.keyPEM.utf8).write(to: directory.appendingPathComponent("key.pem"))
        let origin = try await makeOrigin()
        var violations = 0
        for (number, attack) in Attack.all.enumerated() {
            if let only = options.only, !attack.name.contains(only) { continue }
            let place = directory.appendingPathComponent("\(number)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            violations += try await measure(attack, origin, directory, store: place)
        }
        await origin.stop()
        say("violations: \(violations)")
        return violations == 0
    }

    /// One attack on a gateway of its own, so that memory which one takes is not found with the next.
    /// - Returns: how many limits did not hold.
    private func measure(_ attack: Attack, _ origin: TestOrigin, _ directory: URL, store: URL) async throws -> Int {
        let gateway = try GatewayProcess(
            options.cachectl, origin: origin.url, directory: directory, store: store,
            flags: ["--memory", "\(options.memory)MiB", "--drain", "1"] + attack.flags)
        let target = Target(port: gateway.port, tlsPort: gateway.tlsPort)
        let quiet = await GoodClient(port: target.port).run(for: 1)
        guard quiet.errors.isEmpty, let base = gateway.usage else {
            say("the gateway does not serve: \(quiet.errors.prefix(3))")
            return 1
        }
        // What the operator set, beside what the gateway is without clients: the budget, the bodies kept hot, and a
        // flat sum for the pages of the index and for what the allocator holds back.
        let limit = base.memory / 1_024 + options.memory + 32 + 64
        let gauge = Gauge()
        let usage = ProcessUsage(gateway.process.processIdentifier)
        gauge.start { usage.look().map { ($0.memory, $0.descriptors) } }
        let options = options
        let attacking = Task { try await attack.run(target, options) }
        let good = await GoodClient(port: target.port).run(
            for: options.seconds, answers: 5 * options.seconds)
        attacking.cancel()
        let connections = (try? await attacking.value) ?? []
        let peak = gauge.stop()
        let written = (gateway.usage?.written ?? 0) - base.written
        let hasStopped = gateway.stop()
        for connection in connections { connection.close() }
        let findings = [
            peak.memory / 1_024 > limit ? "over the limit of \(limit) MiB" : nil,
            good.errors.isEmpty ? nil : "the good client was starved, or refused: \(good.errors.prefix(3))",
            hasStopped ? nil : "did not stop in order",
            gateway.complaints.isEmpty ? nil : "said: \(gateway.complaints)",
        ].compactMap { $0 }
        say(
            "\(findings.isEmpty ? "held  " : "BROKEN")  \(attack.name): \(peak.memory / 1_024) of \(limit) MiB, "
                + "\(peak.descriptors) descriptors, \(connections.count) connections, \(written >> 20) MiB written; "
                + "good client: \(good.microseconds.count) answers, p99 \(Self.text(good.p99)), quiet \(Self.text(quiet.p99))"
        )
        for finding in findings { say("        \(finding)") }
        return findings.count
    }

    private static func text(_ microseconds: Double) -> String {
        microseconds.isFinite ? "\(Int(microseconds)) us" : "none"
    }

    private func makeOrigin() async throws -> TestOrigin {
        let live = GeneratedBytes(count: 64 << 20)
        let never = Gate()
        let origin = try await TestOrigin.start { request in
            if request.path.hasPrefix("/hang/") { return .ok("late").holding(at: never) }
            if request.path.hasPrefix("/live/") { return .ok(live).header("Cache-Control", "no-store") }
            return .ok("fresh \(request.path)").header("Cache-Control", "max-age=3600")
        }
        origin.script("/small", .ok(GeneratedBytes(count: 60_000)).header("Cache-Control", "max-age=3600"))
        origin.script("/medium", .ok(GeneratedBytes(count: 1 << 20)).header("Cache-Control", "max-age=3600"))
        let big = OriginResource(
            [UInt8](repeating: 7, count: 32 << 20), etag: "\"big\"",
            fields: [OriginAnswer.Field("Cache-Control", "max-age=3600")])
        origin.script("/big") { big.answer($0) }
        origin.script("/upload", .ok("taken"))
        return origin
    }
}
