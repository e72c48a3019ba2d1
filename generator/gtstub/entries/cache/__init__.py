"""Cache entries on disk. This file stays empty so that loading an entry imports little."""
