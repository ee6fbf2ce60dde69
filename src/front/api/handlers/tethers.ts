// The handlers of tethers. The list is answered from the views; everything else goes to the owner.
import type { tethers } from '../../../api/tethers.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const tethersOf = (app: AppContext) => app.ref('tethers');

export const tetherHandlers: HandlersOf<typeof tethers> = {
  list: ({ cloud }) => cloud.views.tethers(),
  create: ({ app, key: workloadId, body, operationId: id }) =>
    tethersOf(app).ask('create', { workloadId, ...body, ...(id && { id }) }),
  activate: ({ app, key: id }) => tethersOf(app).ask('activate', { id }),
  deactivate: ({ app, key: id }) => tethersOf(app).ask('deactivate', { id }),
  remove: ({ app, key: id }) => tethersOf(app).ask('remove', { id }),
};
