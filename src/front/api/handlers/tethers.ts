// The handlers of tethers. The list is answered from the views; everything else goes to the owner.
import type { tethers } from '../../../api/tethers.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const tethersOf = (app: AppContext) => app.ref('tethers');

export const tetherHandlers: HandlersOf<typeof tethers> = {
  list: ({ cloud }) => cloud.views.tethers(),
  create: ({ app, name, body }) => tethersOf(app).ask('create', { workloadId: name, ...body }),
  activate: ({ app, name }) => tethersOf(app).ask('activate', { id: name }),
  deactivate: ({ app, name }) => tethersOf(app).ask('deactivate', { id: name }),
  remove: ({ app, name }) => tethersOf(app).ask('remove', { id: name }),
};
