/* Single-phase initialisation: everything happens in create_module. */
#include <Python.h>

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "single", NULL, -1, NULL};

PyMODINIT_FUNC
PyInit_single(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "value", 1) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
