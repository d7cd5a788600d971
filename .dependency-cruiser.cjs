// The floor plan. A room may import the rooms on its line, through their index.ts, and nothing else of ours.
const rooms = {
  base: [],
  events: ['base'],
  config: ['base'],
  store: ['base'],
  protocol: ['base', 'config'],
  auth: ['base', 'config', 'store'],
  elicitation: ['base', 'events', 'config', 'protocol'],
  catalog: ['base', 'events', 'config', 'protocol', 'store'],
  connection: ['base', 'events', 'config', 'protocol', 'auth', 'elicitation'],
  extensions: ['base', 'events', 'config', 'catalog'],
  plugins: ['base', 'events', 'config', 'store', 'catalog', 'extensions'],
  set: ['base', 'events', 'config', 'protocol', 'auth', 'elicitation', 'catalog', 'connection', 'extensions'],
  turn: ['base', 'events', 'config', 'catalog', 'elicitation', 'extensions', 'set'],
}
const src = '^packages/host/src/'
const anyOf = (names) => `(${names.join('|')})`

module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    ...Object.entries(rooms).map(([room, may]) => ({
      name: `floor-plan/${room}`,
      severity: 'error',
      from: { path: `${src}${room}/` },
      to: { path: src, pathNot: `${src}${anyOf([room, ...may])}/` },
    })),
    {
      name: 'every-room-is-on-the-plan',
      severity: 'error',
      from: { path: `${src}[^/]+/`, pathNot: `${src}${anyOf(Object.keys(rooms))}/` },
      to: {},
    },
    {
      name: 'use-the-door',
      comment: 'Import another room through its index.ts.',
      severity: 'error',
      from: { path: `${src}([^/]+)/` },
      to: { path: `${src}[^/]+/`, pathNot: `${src}($1/|[^/]+/index[.]ts$)` },
    },
    {
      name: 'pure-files',
      comment: 'state, plan, decide, classify and policy files take facts and return values: no I/O, no packages.',
      severity: 'error',
      // A command may be called like a pure file.
      from: { path: '/(state|plan|decide|classify|policy)[.]ts$', pathNot: '^packages/cli/src/commands/' },
      to: { dependencyTypes: ['core', 'npm'] },
    },
    {
      name: 'sdk-in-auth-only',
      comment: 'The official SDK is for sign-in, and an oracle in tests. Type-only imports are for tests too.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: `(${src}auth/|^packages/testkit/)` },
      to: { path: '(^|/)@modelcontextprotocol/(client|server|sdk|node|core)(/|$)' },
    },
    {
      name: 'wire-in-protocol-and-gateway-only',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: `(${src}protocol/|^packages/(wire|gateway|testkit)/)` },
      to: { path: '^packages/wire/' },
    },
    {
      name: 'wire-depends-on-nothing-of-ours',
      severity: 'error',
      from: { path: '^packages/wire/src/' },
      to: { path: '^packages/', pathNot: '^packages/wire/src/' },
    },
    {
      name: 'processes-in-wire-only',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: '^packages/(wire|testkit)/' },
      to: { path: '^(node:)?child_process$' },
    },
    {
      name: 'products-use-the-public-host',
      severity: 'error',
      from: { path: '^packages/(agent|gateway|cli|dashboard)/' },
      to: { path: src, pathNot: `${src}(index|extension|report)[.]ts$` },
    },
    {
      name: 'testkit-in-tests-only',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: '^packages/testkit/' },
      to: { path: '^packages/testkit/' },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.base.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^packages/[^/]+/dist/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@convoke/source', 'import', 'node', 'default'],
    },
  },
}
