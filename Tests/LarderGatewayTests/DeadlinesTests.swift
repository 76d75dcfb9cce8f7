import NIOCore
import Testing

@testable import LarderServer

/// The limits in time of a connection, without a connection.
@Suite struct DeadlinesTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private static func seconds(_ count: Int64) -> NIODeadline { start + .seconds(count) }

    private static func limits() -> GatewayLimits {
        var limits = GatewayLimits()
        limits.headTimeout = .seconds(10)
        limits.idleTimeout = .seconds(60)
        limits.stallTimeout = .seconds(20)
        limits.minimumRate = 1_024
        limits.contentTimeout = .seconds(300)
        limits.tunnelIdleTimeout = .seconds(30)
        return limits
    }

    @Test func aHeadHasItsTime() {
        var deadlines = HTTP1Deadlines(Self.start)
        var situation = HTTP1Deadlines.Situation(phase: .head, received: 1, queued: 0, pending: 0)
        situation.headBegan = Self.start
        #expect(deadlines.check(situation, Self.seconds(10), Self.limits()) { 0 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(11), Self.limits()) { 0 } == .headIsLate)
    }

    @Test func anIdleConnectionEndsUnlessTheClientStillTakesBytes() {
        var deadlines = HTTP1Deadlines(Self.start)
        let situation = HTTP1Deadlines.Situation(phase: .head, received: 1, queued: 500, pending: 0)
        #expect(deadlines.check(situation, Self.seconds(60), Self.limits()) { 0 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(61), Self.limits()) { 400 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(62), Self.limits()) { 0 } == .isIdle)
        deadlines.restart(Self.seconds(62))
        #expect(deadlines.check(situation, Self.seconds(100), Self.limits()) { 0 } == .inTime)
    }

    @Test func aClientThatAcknowledgesNothingIsTooSlow() {
        var deadlines = HTTP1Deadlines(Self.start)
        let situation = HTTP1Deadlines.Situation(phase: .exchange, received: 1, queued: 1 << 20, pending: 1 << 19)
        // One step of 96 KiB takes 96 s at the least rate, and the stall time comes on top.
        #expect(deadlines.check(situation, Self.start, Self.limits()) { 1 << 18 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(116), Self.limits()) { 1 << 18 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(117), Self.limits()) { 1 << 18 } == .isTooSlow)
    }

    @Test func aClientAtTheLeastRateIsInTime() {
        var deadlines = HTTP1Deadlines(Self.start)
        for second in 0..<1_000 {
            let queued = Int64(second) * 1_024 + 1 << 20
            let situation = HTTP1Deadlines.Situation(phase: .exchange, received: 1, queued: queued, pending: 1 << 19)
            #expect(deadlines.check(situation, Self.seconds(Int64(second)), Self.limits()) { 1 << 18 } == .inTime)
        }
    }

    @Test func aResponseHasItsTimeWhereThatIsLimited() {
        var limits = Self.limits()
        limits.responseTimeout = .seconds(50)
        var deadlines = HTTP1Deadlines(Self.start)
        var situation = HTTP1Deadlines.Situation(phase: .exchange, received: 1, queued: 1 << 20, pending: 1)
        situation.answeredRequestBegan = Self.start
        #expect(deadlines.check(situation, Self.seconds(1), limits) { 0 } == .inTime)
        situation.queued += 1 << 20
        #expect(deadlines.check(situation, Self.seconds(50), limits) { 0 } == .inTime)
        situation.queued += 1 << 20
        #expect(deadlines.check(situation, Self.seconds(51), limits) { 0 } == .isTooSlow)
    }

    @Test func contentComesAtTheLeastRateWhileItIsWanted() {
        var deadlines = HTTP1Deadlines(Self.start)
        var situation = HTTP1Deadlines.Situation(phase: .exchange, received: 0, queued: 0, pending: 0)
        situation.contentBegan = Self.start
        situation.isContentWanted = true
        #expect(deadlines.check(situation, Self.start, Self.limits()) { 0 } == .inTime)
        situation.received = 20 * 1_024
        #expect(deadlines.check(situation, Self.seconds(20), Self.limits()) { 0 } == .inTime)
        situation.received += 20 * 1_024 - 1
        #expect(deadlines.check(situation, Self.seconds(40), Self.limits()) { 0 } == .contentIsLate)
        // The gateway holds it back itself.
        situation.isContentWanted = false
        #expect(deadlines.check(situation, Self.seconds(200), Self.limits()) { 0 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(301), Self.limits()) { 0 } == .contentIsLate)
    }

    @Test func aSilentTunnelEnds() {
        var deadlines = HTTP1Deadlines(Self.start)
        var situation = HTTP1Deadlines.Situation(phase: .tunnel, received: 1, queued: 1, pending: 0)
        #expect(deadlines.check(situation, Self.start, Self.limits()) { 0 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(30), Self.limits()) { 0 } == .inTime)
        situation.queued += 1
        #expect(deadlines.check(situation, Self.seconds(31), Self.limits()) { 0 } == .inTime)
        #expect(deadlines.check(situation, Self.seconds(62), Self.limits()) { 0 } == .isIdle)
    }

    @Test func answersAreCutWhereTheClientStoppedTaking() {
        var account = SendAccount()
        var record = RequestRecord(start: Self.start, methodIndex: 0, logged: nil)
        record.bytesSent = 100_000
        account.queue(100_200)
        let isKept = account.keep(record)
        #expect(isKept)
        account.queue(50_000)
        account.note(pending: 60_000) { 10_200 }
        // 80,000 of the first 100,200 bytes are acknowledged, and the head was sent before the content.
        #expect(account.removeCut().map(\.bytesSent) == [79_800])
        #expect(!account.hasUnsent)
    }

    @Test func answersAreKeptUntilTheyHaveGoneOut() {
        var account = SendAccount()
        let record = RequestRecord(start: Self.start, methodIndex: 0, logged: nil)
        account.queue(10)
        let first = account.keep(record)
        account.queue(10)
        let second = account.keep(record)
        #expect(first && second)
        account.took(upTo: 10)
        #expect(account.nextSent(upTo: 10) != nil)
        #expect(account.nextSent(upTo: 10) == nil)
        account.took(upTo: 20)
        #expect(account.nextSent(upTo: 20) != nil)
        let third = account.keep(record)
        #expect(!third)
    }
}
