# Software bill of materials: a CycloneDX list, in the wheel's metadata (PEP 770), of the components that are compiled in, with their releases. Notices
# and licences are in licenses/. SARRUS_RUNTIME is the release of a C++ runtime that the toolchain links statically; tools/build_wheels.sh sets it.
function(component name version license source)
  set(made "{\"type\": \"library\", \"name\": \"${name}\", \"licenses\": [{\"expression\": \"${license}\"}],
             \"externalReferences\": [{\"type\": \"vcs\", \"url\": \"${source}\"}]}")
  if(version)  # the release of DAQP is not known if SARRUS_DAQP is set
    string(JSON made SET "${made}" version "\"${version}\"")
  endif()
  foreach(more ${ARGN})
    string(REPLACE "=>" ";" more "${more}")
    list(GET more 0 key)
    list(GET more 1 value)
    string(JSON made SET "${made}" ${key} "${value}")
  endforeach()
  string(JSON count LENGTH "${sbom}" components)
  string(JSON sbom SET "${sbom}" components ${count} "${made}")
  set(sbom "${sbom}" PARENT_SCOPE)
endfunction()

set(sbom "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\", \"version\": 1, \"components\": [],
           \"metadata\": {\"component\": {\"type\": \"library\", \"name\": \"sarrus\", \"version\": \"${SKBUILD_PROJECT_VERSION}\",
                                          \"purl\": \"pkg:pypi/sarrus@${SKBUILD_PROJECT_VERSION}\"}}}")
component(pybind11 "${pybind11_VERSION}" BSD-3-Clause https://github.com/pybind/pybind11
          "purl=>\"pkg:pypi/pybind11@${pybind11_VERSION}\"")
component(Eigen "${Eigen3_VERSION}" MPL-2.0 https://gitlab.com/libeigen/eigen
          "purl=>\"pkg:gitlab/libeigen/eigen@${Eigen3_VERSION}\"")
if(daqp_version)
  component(DAQP "${daqp_version}" MIT https://github.com/darnstrom/daqp "purl=>\"pkg:pypi/daqp@${daqp_version}\""
            "hashes=>[{\"alg\": \"SHA-256\", \"content\": \"${daqp_hash}\"}]")
else()
  component(DAQP "" MIT https://github.com/darnstrom/daqp)
endif()
if(SARRUS_RUNTIME)
  component("libc++" "${SARRUS_RUNTIME}" "Apache-2.0 WITH LLVM-exception" https://github.com/llvm/llvm-project)
endif()
file(WRITE ${CMAKE_BINARY_DIR}/headers/sarrus.cdx.json "${sbom}\n")
# an editable install repeats the installation at import, when the metadata folder of the build no longer exists; the list was then installed before
install(CODE "if(EXISTS \"${SKBUILD_METADATA_DIR}\")
  file(INSTALL \"${CMAKE_BINARY_DIR}/headers/sarrus.cdx.json\" DESTINATION \"${SKBUILD_METADATA_DIR}/sboms\")
endif()")
