// Ends what dead hosts left running, and nothing else.
import { isOurs, LEASE_FILE, LEASE_FILE_BYTES_MAX, LEASE_VARIABLE, type LeaseRecord, parseLease } from './leases.ts'
import { nodePlatform, type Platform } from './platform.ts'
import type { ProcessFacts } from './process-table.ts'
import { terminateAll } from './terminate.ts'

/** A process that was ended. */
export interface Reaped {
  pid: number
  command: string
}

const FILES_MAX = 256
/** Leftovers are looked for until there are none, at least twice and at most so often. */
const ROUNDS_MAX = 8
/** Between two looks, in ms. */
const ROUND_MS = 50
/** What a host that died while it was writing leaves. */
const LEASE_DRAFT = /^host-\d+-[0-9a-f]{32}\.json\.\d+\.\d+\.tmp$/
const FOREIGN_FILE_KEPT_MS = 30 * 24 * 3_600_000
const BROKEN_FILE_KEPT_MS = 3_600_000

/**
 * Reads the lease files in `directory` and ends every process that a host which is no longer running has left, its grandchildren included. A process
 * number that has been given away since, the children of a running host, links and files of other users are left alone. Never rejects: what cannot be read is
 * skipped. Takes at least 50 ms when a host died, and up to 4 s when what it left ignores SIGTERM.
 */
export async function reapLeftovers(directory: string, platform: Platform = nodePlatform): Promise<readonly Reaped[]> {
  try {
    const dead = await deadHosts(directory, platform)
    if (dead.length === 0) return []
    const records = dead.map(({ record }) => record)
    const reaped: Reaped[] = []
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const victims = leftoversOf(records, platform)
      if (victims.length === 0 && round > 0) break
      reaped.push(...victims.map(({ pid }) => ({ pid, command: platform.processes.command(pid) })))
      await terminateAll(platform, victims)
      // What was being started when the host or its parent died carries the lease only a moment later.
      await pause(platform, ROUND_MS)
    }
    for (const { path } of dead) await platform.files.remove(path)
    return reaped
  } catch {
    return []
  }
}

function pause(platform: Platform, ms: number): Promise<void> {
  return new Promise((resolve) => void platform.setTimer(resolve, ms))
}

async function deadHosts(directory: string, platform: Platform): Promise<{ path: string; record: LeaseRecord }[]> {
  if (!(await isOurs(platform, directory, 'directory'))) return []
  const place = platform.processes.place()
  const dead: { path: string; record: LeaseRecord }[] = []
  const all = await platform.files.list(directory)
  for (const name of all.filter((one) => LEASE_DRAFT.test(one)).slice(0, FILES_MAX))
    await removeOld(`${directory}/${name}`, BROKEN_FILE_KEPT_MS, platform)
  const names = all.filter((name) => LEASE_FILE.test(name))
  for (const name of names.slice(0, FILES_MAX)) {
    const path = `${directory}/${name}`
    if (!(await isOurs(platform, path, 'file'))) continue
    const record = await readLease(path, platform)
    if (record === undefined) await removeOld(path, BROKEN_FILE_KEPT_MS, platform)
    else if (record.place !== place) await removeOld(path, FOREIGN_FILE_KEPT_MS, platform)
    else if (!isRunning(record, platform)) dead.push({ path, record })
  }
  return dead
}

async function readLease(path: string, platform: Platform): Promise<LeaseRecord | undefined> {
  try {
    return parseLease((await platform.files.read(path, LEASE_FILE_BYTES_MAX)).toString('utf8'))
  } catch {
    return undefined
  }
}

/** Another boot, machine or container may still need its file, so it goes only when it is old. */
async function removeOld(path: string, keptMs: number, platform: Platform): Promise<void> {
  const facts = await platform.files.inspect(path)
  if (facts !== undefined && platform.dateMs() - facts.modifiedAtMs > keptMs) await platform.files.remove(path)
}

function isRunning({ pid, startedAt }: LeaseRecord, { processes }: Platform): boolean {
  const facts = processes.facts(pid)
  return facts !== undefined && !facts.zombie && facts.startedAt === startedAt
}

function leftoversOf(records: readonly LeaseRecord[], platform: Platform): ProcessFacts[] {
  const all = platform.processes.all()
  const spared = selfAndAncestors(platform)
  const leftovers = new Map<number, ProcessFacts>()
  for (const facts of [...recorded(records, all, platform), ...carrying(records, all, platform)])
    if (!facts.zombie && !spared.has(facts.pid)) leftovers.set(facts.pid, facts)
  return [...leftovers.values()]
}

/** The children named in the files, as far as they are still the same processes, and their groups. */
function recorded(
  records: readonly LeaseRecord[],
  all: readonly ProcessFacts[],
  { processes }: Platform,
): ProcessFacts[] {
  const leaders = new Set<number>()
  for (const { pid, startedAt, lease } of records.flatMap(({ children }) => children)) {
    if (processes.facts(pid)?.startedAt !== startedAt) continue
    // Where the variable can be read it has the last word: a process number can come back within one tick of the clock.
    if (!processes.readsEnvironments || processes.variable(pid, LEASE_VARIABLE) === lease) leaders.add(pid)
  }
  // A child leads its group as long as it lives, so all members are its own.
  return all.filter(({ pid, groupId }) => leaders.has(pid) || leaders.has(groupId))
}

/** Whoever carries a lease of a dead host, in whatever group and session it is now. */
function carrying(
  records: readonly LeaseRecord[],
  all: readonly ProcessFacts[],
  { processes }: Platform,
): ProcessFacts[] {
  const hosts = new Set(records.map(({ host }) => host))
  const carriers = processes
    .carrying(LEASE_VARIABLE)
    .filter(({ value }) => hosts.has(value.slice(0, value.indexOf('-'))))
  const pids = new Set(carriers.map(({ pid }) => pid))
  return all.filter(({ pid }) => pids.has(pid))
}

/** A host can itself be a leftover of a dead one; it must not end itself or whoever waits for it. */
function selfAndAncestors({ pid, processes }: Platform): Set<number> {
  const spared = new Set<number>([0, 1])
  for (let at: number | undefined = pid; at !== undefined && !spared.has(at); at = processes.facts(at)?.parentPid)
    spared.add(at)
  return spared
}
