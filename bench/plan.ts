// Every workload of `npm run bench`: who takes part, how it is set up, what is read, and what we aim at.

/** One figure of a workload. */
export interface Metric {
  readonly key: string
  readonly unit: 'ms' | 'us' | 'MB' | 'KB' | '1/s' | ''
  /** Ratio to the floor of the same round that we aim at; absolute where the unit of `target` says so. */
  readonly target?: { readonly at: number; readonly of: 'ratio' | 'absolute' }
  /** Default `lower`. */
  readonly better?: 'lower' | 'higher'
}

export interface Workload {
  readonly name: string
  /** How it is run: through a library in a fresh process, through a gateway, or as a command. */
  readonly kind: 'library' | 'gateway' | 'command'
  /** The function in `workloads.mjs`, or the row of commands. */
  readonly work: string
  readonly config: Readonly<Record<string, unknown>>
  /** The first one is the floor. */
  readonly peers: readonly string[]
  readonly metrics: readonly Metric[]
}

const ratio = (at: number): { at: number; of: 'ratio' } => ({ at, of: 'ratio' })
const absolute = (at: number): { at: number; of: 'absolute' } => ({ at, of: 'absolute' })
const lowerRatio = (key: string, unit: Metric['unit'], at: number): Metric => ({ key, unit, target: ratio(at) })
const higherRatio = (key: string, at: number): Metric => ({ key, unit: '1/s', target: ratio(at), better: 'higher' })
const plain = (key: string, unit: Metric['unit']): Metric => ({ key, unit })

const LIBRARIES = ['raw', 'wire', 'host', 'sdk1', 'client2'] as const
const HTTP_LIBRARIES = ['raw', 'wire', 'wire-undici', 'host', 'host-undici', 'sdk1', 'client2'] as const

function library(name: string, work: string, config: Workload['config'], metrics: readonly Metric[]): Workload {
  return {
    name,
    kind: 'library',
    work,
    config,
    metrics,
    peers: config['transport'] === 'http' ? HTTP_LIBRARIES : LIBRARIES,
  }
}

function command(name: string, work: string, peers: readonly string[], at: number): Workload {
  return {
    name,
    kind: 'command',
    work,
    config: {},
    peers,
    metrics: [lowerRatio('cpuMs', 'ms', at), plain('wallMs', 'ms')],
  }
}

const latency = (cpu: number, p50: number): readonly Metric[] => [
  lowerRatio('cpuUs', 'us', cpu),
  lowerRatio('p50us', 'us', p50),
  plain('p99us', 'us'),
]

const HTTP_CALLS = { transport: 'http', warm: 500, calls: 2_000 }

export const WORKLOADS: readonly Workload[] = [
  library('W1 start-up, 10 servers of 100 tools', 'startup', { servers: 10, tools: 100 }, [
    lowerRatio('cpuMs', 'ms', 1.5),
    { key: 'importCpuMs', unit: 'ms', target: absolute(40) },
    lowerRatio('rssMb', 'MB', 1.25),
    lowerRatio('wallMs', 'ms', 1.1),
    { key: 'launches', unit: '', target: absolute(10) },
  ]),
  library('W1 one server 2 s late, one failing', 'mixed', { servers: 10, tools: 100, slowMs: 2_000 }, [
    lowerRatio('healthyMs', 'ms', 1.1),
    plain('healthy', ''),
    plain('tools', ''),
  ]),
  library('W2 stdio, cold (20 warm, 300 calls)', 'latency', { warm: 20, calls: 300 }, latency(1.6, 1.6)),
  library('W2 stdio, main (800 warm, 2,000 calls)', 'latency', { warm: 800, calls: 2_000 }, latency(1.3, 1.15)),
  library('W2 stdio, hot (20,000 warm, 5,000 calls)', 'latency', { warm: 20_000, calls: 5_000 }, latency(1.15, 1.15)),
  library('W2 HTTP (500 warm, 2,000 calls)', 'latency', HTTP_CALLS, latency(1.3, 1.3)),
  {
    ...library('W3 stdio, 50 callers', 'burst', { callers: 50, warm: 20_000, calls: 60_000 }, [
      higherRatio('perSecond', 1.5),
      plain('cpuUs', 'us'),
      plain('rssMb', 'MB'),
    ]),
    peers: ['raw', 'raw-batch', ...LIBRARIES.slice(1)],
  },
  library('W3 HTTP, 50 callers', 'burst', { transport: 'http', callers: 50, warm: 5_000, calls: 15_000 }, [
    higherRatio('perSecond', 0.7),
    plain('cpuUs', 'us'),
    plain('rssMb', 'MB'),
  ]),
  library('W4 10,000 tools', 'catalog', { servers: 10, tools: 1_000, again: 8 }, [
    lowerRatio('coldCpuMs', 'ms', 1.6),
    lowerRatio('againCpuMs', 'ms', 0.01),
    lowerRatio('rssMb', 'MB', 1.3),
  ]),
  library('W4 1,000 tools with output schemas', 'catalog', { servers: 10, tools: 100, outputSchema: true, again: 8 }, [
    lowerRatio('coldCpuMs', 'ms', 1.3),
    plain('againCpuMs', 'ms'),
  ]),
  library('W5 results of 1 MB', 'big', { bytes: 1_048_576, warm: 5, calls: 150 }, [
    lowerRatio('cpuMs', 'ms', 1.2),
    plain('p50ms', 'ms'),
  ]),
  library('W5 a result of 20 MB', 'big', { bytes: 20_971_520, warm: 0, calls: 2 }, [
    lowerRatio('cpuMs', 'ms', 1.2),
    plain('p50ms', 'ms'),
  ]),
  {
    name: 'W7 gateway, 10 servers of 100 tools',
    kind: 'gateway',
    work: 'gateway',
    config: {
      servers: 10,
      tools: 100,
      warm: 300,
      calls: 1_000,
      rare: 12,
      callers: 50,
      burstWarm: 5_000,
      burstCalls: 20_000,
    },
    peers: ['floor', 'convoke', 'sdk1-gateway'],
    metrics: [
      lowerRatio('p50us', 'us', 1.3),
      higherRatio('perSecond', 0.8),
      lowerRatio('cpuUs', 'us', 1.5),
      lowerRatio('bigMs', 'ms', 1.2),
      plain('listMs', 'ms'),
      lowerRatio('rssReadyMb', 'MB', 1.25),
      lowerRatio('rssLoadMb', 'MB', 1.5),
      plain('readyMs', 'ms'),
    ],
  },
  library('W8 an idle connection (50 more after 50)', 'idle', { servers: 50 }, [
    { key: 'rssKb', unit: 'KB', target: absolute(35) },
    { key: 'heapKb', unit: 'KB', target: absolute(16) },
  ]),
  {
    ...library('W10 first tools of 50 known servers, 2,000 tools', 'known', { servers: 50, tools: 40 }, [
      { key: 'firstToolsMs', unit: 'ms', target: absolute(150) },
      plain('cpuMs', 'ms'),
      { key: 'children', unit: '', target: absolute(0) },
      { key: 'starts', unit: '', target: absolute(0) },
    ]),
    peers: ['host'],
  },
  {
    ...library('W11 refresh of 50 unchanged servers', 'refresh', { servers: 50, tools: 40 }, [
      { key: 'refreshCpuMs', unit: 'ms', target: absolute(5) },
      plain('firstRefreshCpuMs', 'ms'),
      { key: 'reconnects', unit: '', target: absolute(0) },
      { key: 'starts', unit: '', target: absolute(0) },
    ]),
    peers: ['host'],
  },
  {
    ...library('W13 a step with 50 idle servers, 2,000 tools', 'steps', { servers: 50, tools: 40 }, [
      { key: 'stepMs', unit: 'ms', target: absolute(1) },
      { key: 'stepCpuMs', unit: 'ms', target: absolute(1) },
      plain('firstStepMs', 'ms'),
      plain('turnMs', 'ms'),
      { key: 'publications', unit: '', target: absolute(0) },
      { key: 'starts', unit: '', target: absolute(0) },
    ]),
    peers: ['host'],
  },
  {
    ...library('W12 HTTP with a stored sign-in (500 warm, 2,000 calls)', 'latency', HTTP_CALLS, latency(1.1, 1.1)),
    peers: ['host', 'host-signed-in'],
  },
  command('W9 --version', 'version', ['node -e 0', 'convoke'], 1.15),
  command('W9 tools, 1 server', 'tools', ['raw', 'convoke', 'sdk1'], 1.3),
  command('W9 call', 'call', ['raw', 'convoke', 'sdk1'], 1.3),
]
