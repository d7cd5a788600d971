import type { Requirement } from './requirement.ts'

/** What servers offer: names, listings, filters, changes, resources and prompts. */
export const catalog: readonly Requirement[] = [
  {
    id: 'catalog.001',
    text: 'Every flat name is unique, at most 48 characters and made of letters, digits, _ and -, whatever servers and tools are called',
    milestone: 1,
  },
  {
    id: 'catalog.002',
    text: 'Names depend neither on the order of servers nor on the order of their tools',
    milestone: 1,
  },
  {
    id: 'catalog.003',
    text: 'One more server renames nothing that does not collide with it',
    milestone: 1,
  },
  {
    id: 'catalog.004',
    text: 'A name that fits and that nobody else wants is kept; a cut one keeps a readable head and the hash of the tool’s identity',
    milestone: 1,
  },
  {
    id: 'catalog.005',
    text: 'The namespaced rendering has its own prefix and limit, and the hashes are those of other hosts of the same family',
    milestone: 1,
  },
  {
    id: 'catalog.006',
    text: 'Hostile tool names are safe and unique in the catalog, and go over the wire as the server spelled them',
    milestone: 1,
  },
  {
    id: 'catalog.010',
    text: 'allow and deny take exact raw names: deny wins, an empty allow allows nothing, absent ones allow everything',
    milestone: 1,
  },
  {
    id: 'catalog.011',
    text: 'A tool is hidden from models only by a visibility list without "model"; it can still be called',
    milestone: 1,
  },
  {
    id: 'catalog.012',
    text: 'A bad tool is left out alone, by name and with the reason',
    milestone: 1,
  },
  {
    id: 'catalog.013',
    text: 'A listing of several pages is one listing; endless pages, repeated cursors and too many items fail it with the limit named',
    milestone: 1,
  },
  {
    id: 'catalog.014',
    text: 'A server that does not know tools/list offers no tools and is ready',
    milestone: 1,
  },
  {
    id: 'catalog.020',
    text: 'A changed tool list is asked for again and told as a new revision; a notice without a change tells nothing',
    milestone: 1,
  },
  {
    id: 'catalog.021',
    text: 'A burst of notices costs one listing, and at most one runs and one waits',
    milestone: 1,
  },
  {
    id: 'catalog.022',
    text: 'A storm of changes is broken and named in the status, and the server stays usable',
    milestone: 1,
  },
  {
    id: 'catalog.023',
    text: 'A view never moves: what changes later is in the next one',
    milestone: 1,
  },
  {
    id: 'catalog.024',
    text: 'A modern server is asked to tell about changes, and its changes arrive',
    milestone: 1,
  },
  {
    id: 'catalog.025',
    text: 'The revision of a view is the same in the next process when the tools are the same',
    milestone: 1,
  },
  {
    id: 'catalog.030',
    text: 'Resources, templates and prompts of all servers come together; each says whose it is, URIs are not rewritten, and one that fails hides nobody',
    milestone: 1,
  },
  {
    id: 'catalog.031',
    text: 'A URI that two servers offer is read only when it is said which one is meant; otherwise the error names both',
    milestone: 1,
  },
  {
    id: 'catalog.032',
    text: 'A URI that only a template covers is read from the server of that template',
    milestone: 1,
  },
  {
    id: 'catalog.033',
    text: 'A prompt is got by its flat name, and a completion reaches the server of its prompt or template',
    milestone: 1,
  },
  {
    id: 'catalog.034',
    text: 'SERVER/TOOL and flat names find a tool; the longest server name wins; unknown ones suggest the near names and sleeping servers are told apart',
    milestone: 1,
  },
  {
    id: 'catalog.040',
    text: 'Structured content that breaks its output schema fails the call and says that the tool ran; a missing one and an unusable schema do not',
    milestone: 1,
  },
]
